//! Tasks of files: what they give, what they refuse, and that nothing ends the program.

mod fuzz;
mod records;
mod series;
mod text;
mod vectors;

use std::path::Path;

use headcount_data::{Dataset, FileError, OfFiles, Sets, Task, files::Format};
use tempfile::TempDir;

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder
}

/// All that there is, at most.
const ALL: Sets = Sets { train_examples: None, validation_examples: 100_000, test_examples: 100_000 };

fn open<F: Format>(format: &F, folder: &Path) -> Result<Dataset, FileError> {
    let task = Task::new(OfFiles::new(format.clone()));
    task.check().unwrap();
    Dataset::open(&task, &ALL, folder)
}

/// The message, without the folder that the files lie in.
fn refused<F: Format>(format: &F, folder: &TempDir) -> String {
    let error = open(format, folder.path()).expect_err("these files are wrong").to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

/// All samples of a split.
fn all(data: &Dataset, split: headcount_data::Split) -> Vec<headcount_data::Sample> {
    let generator = data.samples(split, 0);
    (0..data.size(split).unwrap_or(200)).map(|index| generator.sample(index)).collect()
}
