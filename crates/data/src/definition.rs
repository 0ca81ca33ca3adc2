//! What a task is, and a value that holds any.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::answers::Answers;
use crate::error::TaskError;
use crate::file_error::FileError;
use crate::order::Sets;
use crate::parameter::Parameter;
use crate::random::Stream;
use crate::sample::{NumberSizes, Sample, SourceSizes};
use crate::stored::{self, Stored};

/// Makes one sample from a stream of random numbers, and from nothing else.
pub type Draw = Arc<dyn Fn(&mut Stream) -> Sample + Send + Sync>;

/// A task with its parameters. Whoever implements it, with `Default` for the parameters that a config leaves out and serde's
/// derived `Deserialize` (with `default` and `deny_unknown_fields`), can [`register`](crate::register) it; then configs may
/// name it. `examples/define_task.rs` is one from outside this crate.
pub trait Definition: Any + fmt::Debug + Send + Sync {
    /// The name in a config: lower-case letters, digits and `_`. The same for all parameters.
    fn kind(&self) -> &'static str;

    /// What the task is, in one paragraph. The same for all parameters.
    fn about(&self) -> &'static str;

    /// What to expect of different head counts. The same for all parameters.
    fn prediction(&self) -> &'static str;

    /// Every parameter with its value, in the order of the documentation. These are the keys of a config; the samples depend
    /// on all of them and on nothing else.
    fn parameters(&self) -> Vec<(&'static str, Parameter)>;

    /// Keys of parameters that choose among instances of one task which nobody would tell apart: seeds of what all samples
    /// share. A comparison may vary them from pair to pair, so that it speaks of the task and not of one instance. The
    /// same for all parameters.
    fn instance_seeds(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks the parameters. What passes gives samples in bounded memory, without panic.
    ///
    /// # Errors
    /// The first rule broken, naming the values at fault; [`TaskError::key`] is the field to point at.
    fn check(&self) -> Result<(), TaskError>;

    /// V, the number of token ids: tokens lie in `0..vocab`.
    fn vocab(&self) -> usize;

    /// Number of classes: targets lie in `0..outputs`.
    fn outputs(&self) -> usize;

    /// L, the length of every sample, padding included.
    fn seq_len(&self) -> usize;

    /// The sizes of the sources, in sequence-to-sequence tasks; `None` in the others.
    fn source(&self) -> Option<SourceSizes> {
        None
    }

    /// How many numbers are read and said at each position, in tasks that have any; `None` in the others. Where numbers are read
    /// and no tokens, [`Definition::vocab`] is 0; where numbers are said and no classes, [`Definition::outputs`] is.
    fn numbers(&self) -> Option<NumberSizes> {
        None
    }

    /// How many distinct samples the task can give, `u128::MAX` meaning that many or more; `None` where it can't tell exactly.
    /// Where they are few, a set repeats itself, and tests ask what training has shown.
    fn distinct_samples(&self) -> Option<u128> {
        None
    }

    /// Whether a sample has one answer, for all that it holds. It stands at the last real position; a model that reads both ways
    /// may as well say it at a read-out token of its own.
    fn one_answer(&self) -> bool {
        false
    }

    /// Whether a read-out token stands before every sample, where its one answer is asked for: see [`Task::with_readout`].
    fn readout(&self) -> bool {
        false
    }

    /// The task that this one is but for its read-out; `None` without one.
    fn plain(&self) -> Option<&Task> {
        None
    }

    /// Whether an answer depends on later positions too, so that a causal model can't know it.
    fn both_ways(&self) -> bool {
        false
    }

    /// The same task with what its files hold, as many samples as `sets` asks for; `None` where there are no files to read. Paths
    /// are taken from `folder`, and complete from then on. Until then a task of files tells no sizes and gives no samples. See [`Dataset::open`](crate::Dataset::open).
    fn open(&self, _folder: &Path, _sets: &Sets) -> Option<Result<Task, FileError>> {
        None
    }

    /// What was read, in a task of files that is open.
    fn stored(&self) -> Option<&Arc<Stored>> {
        None
    }

    /// Builds what all samples share and returns how to draw one. The parameters have passed [`Definition::check`].
    fn prepare(&self) -> Draw;

    /// `sample` as lines that a person can follow, under a heading: tokens in readable names, scored positions marked with
    /// `*` and their target.
    ///
    /// # Panics
    /// May panic if `sample` is not one of this task's.
    fn explain(&self, sample: &Sample) -> String;

    /// What a model says at each position.
    fn answers(&self) -> Answers {
        Answers::Classes
    }

    /// A token that is read as a person would call it, such as `r1=3`; its number where it has no other name.
    fn token_name(&self, token: u32) -> String {
        token.to_string()
    }

    /// The same for a token of a source.
    fn source_token_name(&self, token: u32) -> String {
        token.to_string()
    }

    /// The same for an output class: the token's name where a model answers with tokens.
    fn answer_name(&self, class: u32) -> String {
        match self.answers() {
            Answers::Classes => class.to_string(),
            Answers::Tokens | Answers::Sequence { .. } => self.token_name(class),
        }
    }

    /// Which positions the answer at `position` of `sample` depends on: what attention must fetch. Earlier ones and its own, but
    /// in tasks that go [both ways](Definition::both_ways). Groups of equal parts
    /// come in the same order with the same names for every sample and position. Empty where the position is not scored, where
    /// the answer follows from none in particular, and in tasks that don't say.
    ///
    /// # Panics
    /// May panic if `sample` is not one of this task's.
    fn needed(&self, _sample: &Sample, _position: usize) -> Vec<Needed> {
        vec![]
    }

    /// What a perfect model says to tokens of a user's own. In a sequence-to-sequence task `read` is a source, and the answer
    /// its target with the end; in the others there is an answer for each token of `read`, [`IGNORE`] where none is asked
    /// for. `None` where the tokens alone do not tell.
    ///
    /// [`IGNORE`]: crate::IGNORE
    ///
    /// # Panics
    /// May panic on tokens that the task does not have.
    fn expected(&self, _read: &[u32]) -> Option<Vec<i32>> {
        None
    }
}

/// Positions that an answer depends on, and the part that they play: [`Definition::needed`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Needed {
    /// The part, such as `register 0`.
    pub name: String,
    /// Where the positions are.
    pub side: Side,
    /// Ascending, at least one. Where there are several, each holds the same, and one of them is enough.
    pub positions: Vec<usize>,
}

impl Needed {
    /// Positions of the sequence that holds the answer.
    pub fn own(name: impl Into<String>, positions: Vec<usize>) -> Self {
        Self { name: name.into(), side: Side::Own, positions }
    }

    /// Positions of the source.
    pub fn of_source(name: impl Into<String>, positions: Vec<usize>) -> Self {
        Self { name: name.into(), side: Side::Source, positions }
    }
}

/// A sequence that a position may be of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The one that holds the answers: self-attention reads it. What a decoder reads, in sequence-to-sequence tasks.
    Own,
    /// What an encoder reads: attention from decoder to encoder reads it.
    Source,
}

/// Any task, cheap to clone. All of [`Definition`] can be called on it. It is written as a config's section has it: `kind`, then
/// the parameters. Two are equal where kind and parameters are; open files are equal where they hold the same, wherever they lie.
#[derive(Clone)]
pub struct Task(Arc<dyn Definition>);

impl Task {
    /// The task that `definition` is; it need not be registered.
    pub fn new(definition: impl Definition) -> Self {
        Self(Arc::new(definition))
    }

    /// The parameters as the type that they have, where the task is a `T`.
    pub fn downcast<T: Definition>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        self.plain().map_or_else(|| any.downcast_ref(), Self::downcast)
    }

    /// Kind and parameters as text that is the same for the same task only. Files go by what they hold, wherever they lie.
    pub(crate) fn canonical(&self) -> String {
        let mut text = format!("kind={}\n", self.kind());
        let stored = self.stored();
        for (name, value) in self.parameters() {
            if stored.is_none() || !stored::PATHS.contains(&name) {
                text += &format!("{name}={value}\n");
            }
        }
        for file in stored.iter().flat_map(|stored| stored.files()) {
            text += &format!("{} {}\n", file.role, file.blake3);
        }
        text
    }
}

impl<T: Definition> From<T> for Task {
    fn from(definition: T) -> Self {
        Self::new(definition)
    }
}

impl Deref for Task {
    type Target = dyn Definition;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        match (self.stored(), other.stored()) {
            (Some(_), Some(_)) => self.canonical() == other.canonical(),
            _ => self.kind() == other.kind() && self.parameters() == other.parameters(),
        }
    }
}

impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parameters = self.parameters();
        let mut map = serializer.serialize_map(Some(1 + parameters.len()))?;
        map.serialize_entry("kind", self.kind())?;
        parameters.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}
