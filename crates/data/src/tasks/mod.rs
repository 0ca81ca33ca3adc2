//! The tasks. To add one: a file beside this one that implements `Definition`, its `mod` line, and its line in
//! `tasks!`.

mod mqar;
mod registers;
mod reverse;
mod rewrite;
mod sort;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::TaskError;
use crate::generator::Generator;
use crate::random::Stream;
use crate::sample::{Sample, SourceSizes, Split};

pub use mqar::Fill;

tasks! {
    // module, which is also the `kind` in a config :: parameters
    registers::Registers,
    mqar::Mqar,
    reverse::Reverse,
    sort::Sort,
}

/// Makes one sample from a stream of random numbers.
pub(crate) type Draw = Arc<dyn Fn(&mut Stream) -> Sample + Send + Sync>;

/// What a task's parameters must offer; `Default` gives the parameters that a config leaves out.
pub(crate) trait Definition: Default {
    /// What the task is, in one paragraph.
    const ABOUT: &'static str;
    /// What to expect of different head counts.
    const PREDICTION: &'static str;

    /// Every parameter with its value as text. These are the keys of a config, and the samples depend on all of them.
    fn parameters(&self) -> Vec<(&'static str, String)>;

    /// # Errors
    /// The first rule that the parameters break. What passes can be drawn, in bounded memory, without panic.
    fn check(&self) -> Result<(), TaskError>;

    /// Number of token ids.
    fn vocab(&self) -> usize;

    /// Number of classes that targets come from.
    fn outputs(&self) -> usize;

    /// L, the length of every sample.
    fn seq_len(&self) -> usize;

    /// The sizes of the sources, in sequence-to-sequence tasks.
    fn source(&self) -> Option<SourceSizes> {
        None
    }

    /// Builds what all samples share and returns how to draw one.
    fn prepare(&self) -> Draw;

    /// `sample` as lines that a person can follow, under a heading; scored positions carry a `*` and their target.
    fn explain(&self, sample: &Sample) -> String;

    /// What a model says at each position.
    fn answers(&self) -> Answers {
        Answers::Classes
    }

    /// A short name for a token, where there is a better one than its number.
    fn token_name(&self, token: u32) -> String {
        token.to_string()
    }

    /// What a perfect model says to tokens of a user's own; see [`Task::expected`].
    fn expected(&self, _read: &[u32]) -> Option<Vec<i32>> {
        None
    }
}

/// What a model of a task says at each position, and so what it can mean to go on from a prompt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answers {
    /// A class from a space of its own: there is nothing to read next.
    Classes,
    /// A token of the vocabulary that is read. Only scored positions are trained.
    Tokens,
    /// The next token of the target, whose tokens are read in turn, after `start` and until `end`.
    Sequence {
        /// The decoder's first token.
        start: u32,
        /// The token that says that the target is complete.
        end: u32,
    },
}

/// Declares [`Task`] and everything that depends on which tasks there are.
macro_rules! tasks {
    ($($module:ident :: $Name:ident),+ $(,)?) => {
        $(pub use $module::$Name;)+

        /// A task with its parameters; in a file, `kind` names the task and its parameters stand beside it.
        #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Task {
            $(#[doc = concat!("See [`", stringify!($Name), "`].")] $Name($Name),)+
        }

        impl Task {
            /// The names of all tasks.
            pub fn kinds() -> &'static [&'static str] {
                &[$(stringify!($module)),+]
            }

            /// What the task `kind` is, in one paragraph; `None` if there is no such task.
            pub fn about(kind: &str) -> Option<&'static str> {
                match kind {
                    $(stringify!($module) => Some($Name::ABOUT),)+
                    _ => None,
                }
            }

            /// What to expect of different head counts in the task `kind`; `None` if there is no such task.
            pub fn prediction(kind: &str) -> Option<&'static str> {
                match kind {
                    $(stringify!($module) => Some($Name::PREDICTION),)+
                    _ => None,
                }
            }

            /// The task `kind` with its default parameters; `None` if there is no such task.
            pub fn default_of(kind: &str) -> Option<Self> {
                match kind {
                    $(stringify!($module) => Some(Self::$Name($Name::default())),)+
                    _ => None,
                }
            }

            /// Reads the parameters of the task `kind` from `deserializer`, which must not hold `kind` itself; unlike
            /// reading a whole [`Task`], this keeps the deserializer's positions in errors. `None` if there is no such
            /// task.
            pub fn from_kind<'de, D: Deserializer<'de>>(kind: &str, deserializer: D) -> Option<Result<Self, D::Error>> {
                match kind {
                    $(stringify!($module) => Some($Name::deserialize(deserializer).map(Self::$Name)),)+
                    _ => None,
                }
            }

            /// The task's name.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$Name(_) => stringify!($module),)+
                }
            }

            /// Every parameter with its value as text, in the order of the documentation.
            pub fn parameters(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$Name(task) => task.parameters(),)+
                }
            }

            /// Checks the parameters. What passes gives samples in bounded memory, without panic.
            ///
            /// # Errors
            /// The first rule broken, naming the values at fault; [`TaskError::key`] is the field to point at.
            pub fn check(&self) -> Result<(), TaskError> {
                match self {
                    $(Self::$Name(task) => task.check(),)+
                }
            }

            /// Number of token ids: tokens lie in `0..vocab`.
            pub fn vocab(&self) -> usize {
                match self {
                    $(Self::$Name(task) => task.vocab(),)+
                }
            }

            /// Number of classes: targets lie in `0..outputs`.
            pub fn outputs(&self) -> usize {
                match self {
                    $(Self::$Name(task) => task.outputs(),)+
                }
            }

            /// L, the length of every sample in tokens.
            pub fn seq_len(&self) -> usize {
                match self {
                    $(Self::$Name(task) => task.seq_len(),)+
                }
            }

            /// The sizes of the sources, in sequence-to-sequence tasks; `None` in the others.
            pub fn source(&self) -> Option<SourceSizes> {
                match self {
                    $(Self::$Name(task) => task.source(),)+
                }
            }

            /// `sample` as lines that a person can follow: tokens in readable names, scored positions marked with `*`
            /// and their target.
            ///
            /// # Panics
            /// May panic if `sample` is not one of this task's.
            pub fn explain(&self, sample: &Sample) -> String {
                match self {
                    $(Self::$Name(task) => task.explain(sample),)+
                }
            }

            /// What a model of the task says at each position.
            pub fn answers(&self) -> Answers {
                match self {
                    $(Self::$Name(task) => task.answers(),)+
                }
            }

            /// A token as a person would call it, such as `r1=3`; its number where it has no other name.
            pub fn token_name(&self, token: u32) -> String {
                match self {
                    $(Self::$Name(task) => task.token_name(token),)+
                }
            }

            /// What a perfect model says to tokens of a user's own. In a sequence-to-sequence task `read` is a source, and
            /// the answer its target with the end; in the others there is an answer for each token of `read`, [`IGNORE`]
            /// where none is asked for. `None` where the tokens alone do not tell.
            ///
            /// [`IGNORE`]: crate::IGNORE
            ///
            /// # Panics
            /// May panic on tokens that the task does not have.
            pub fn expected(&self, read: &[u32]) -> Option<Vec<i32>> {
                match self {
                    $(Self::$Name(task) => task.expected(read),)+
                }
            }

            pub(crate) fn prepare(&self) -> Draw {
                match self {
                    $(Self::$Name(task) => task.prepare(),)+
                }
            }
        }
    };
}
use tasks;

impl Task {
    /// The config keys of the task `kind`, without `kind`; `None` if there is no such task.
    pub fn keys(kind: &str) -> Option<Vec<&'static str>> {
        let parameters = Self::default_of(kind)?.parameters();
        Some(parameters.into_iter().map(|(key, _)| key).collect())
    }

    /// Sample `index` of `split`. To draw more than one, keep a [`Generator`].
    ///
    /// # Panics
    /// As [`Generator::new`].
    pub fn sample(&self, split: Split, data_seed: u64, index: u64) -> Sample {
        Generator::new(self, split, data_seed).sample(index)
    }

    /// Kind and parameters as text that is the same for the same task only.
    pub(crate) fn canonical(&self) -> String {
        let mut text = format!("kind={}\n", self.kind());
        for (name, value) in self.parameters() {
            text += &format!("{name}={value}\n");
        }
        text
    }
}
