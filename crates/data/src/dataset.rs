//! What models learn from, as one value, whether it is generated or read from files.

use std::path::Path;

use crate::baselines::{Baseline, baselines};
use crate::definition::Task;
use crate::file_error::FileError;
use crate::fingerprint::fingerprint;
use crate::generator::Generator;
use crate::order::Sets;
use crate::overlap::{Overlap, overlap};
use crate::sample::Split;
use crate::spread::{Balance, Spread, balance, spread};
use crate::stored::ReadFile;

/// A task with its sets, ready to give samples. Names of tokens, sizes, what is needed for an answer: of its [`Task`].
///
/// ```
/// use headcount_data::{Dataset, OfFiles, Sets, Split, Task, files::Text};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("data.txt"), "a text ".repeat(100))?;
/// let task = Task::new(OfFiles::new(Text { files: "data.txt".into(), seq_len: 8, ..Text::default() }));
/// let data = Dataset::open(&task, &Sets::default(), folder.path())?;
/// assert_eq!((data.task().vocab(), data.task().seq_len()), (256, 8));
/// assert_eq!(data.sets().test_examples, 9); // 70 bytes, of which 69 follow another, eight in each sample
/// assert_eq!(data.samples(Split::Test, 0).sample(0).real, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    task: Task,
    sets: Sets,
}

impl Dataset {
    /// Reads the files of `task`, if it has any, their paths taken from `folder`: that of the config which names them. Sets have no
    /// more samples than there are. Task and sets must have passed their checks.
    ///
    /// # Errors
    /// Whatever is wrong with the files.
    pub fn open(task: &Task, sets: &Sets, folder: &Path) -> Result<Self, FileError> {
        let task = match task.open(folder, sets) {
            Some(opened) => opened?,
            None => task.clone(),
        };
        let sets = task.stored().map_or(*sets, |stored| stored.sets());
        Ok(Self { task, sets })
    }

    /// The task, open.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The sizes of the sets, as they are. Without a size of the training set, every training sample is a new one.
    pub fn sets(&self) -> &Sets {
        &self.sets
    }

    /// The samples of `split` by index, in a run with seed `run_seed`.
    pub fn samples(&self, split: Split, run_seed: u64) -> Generator {
        Generator::new(&self.task, split, split.data_seed(run_seed))
    }

    /// How many samples of the validation or test set there are; of the training set, where they are a fixed number.
    pub fn size(&self, split: Split) -> Option<u64> {
        match split {
            Split::Train => self.sets.train_examples,
            Split::Validation => Some(self.sets.validation_examples),
            Split::Test => Some(self.sets.test_examples),
        }
    }

    /// Whether every run is tested on the same samples, as where they come from files: an interval over runs then lacks what other
    /// samples would change, and scores are kept by [unit](Self::unit).
    pub fn is_fixed(&self) -> bool {
        self.task.stored().is_some()
    }

    /// What sample `index` of the validation or test set is a part of: a document, a stretch of time, or itself. Samples of one
    /// unit are not independent of each other, those of two are.
    pub fn unit(&self, split: Split, index: u64) -> u64 {
        self.task.stored().map_or(index, |stored| stored.unit(split, index))
    }

    /// The files that were read, with their hashes; none where samples are generated.
    pub fn files(&self) -> &[ReadFile] {
        self.task.stored().map_or(&[], |stored| stored.files())
    }

    /// See [`fingerprint()`]. It changes with what is in the files, and does not with where they lie.
    pub fn fingerprint(&self, run_seed: u64) -> String {
        fingerprint(&self.task, &self.sets, run_seed)
    }

    /// See [`baselines()`].
    pub fn baselines(&self, split: Split) -> Vec<Baseline> {
        baselines(&self.task, &self.sets, split)
    }

    /// See [`balance()`].
    pub fn balance(&self, split: Split) -> Balance {
        balance(&self.task, &self.sets, split)
    }

    /// See [`spread()`].
    pub fn spread(&self, split: Split) -> Spread {
        spread(&self.task, &self.sets, split)
    }

    /// See [`overlap()`].
    pub fn overlap(&self, split: Split, run_seed: u64, trained: u64) -> Overlap {
        overlap(&self.task, &self.sets, split, run_seed, trained)
    }
}
