//! The tasks that there are. To add one: a file beside this one that implements [`Definition`], its `mod` line and its line in
//! `BUILT_IN`. Another crate adds its own with [`register`].

mod mqar;
mod registers;
mod rewrite;

use std::any::TypeId;
use std::sync::{PoisonError, RwLock};

use serde::Deserializer;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::definition::{Definition, Task};
use crate::order::Sets;
use crate::parameter::{self, Parameter, Read};

pub use mqar::{Fill, Mqar};
pub use registers::Registers;
pub use rewrite::{Ascending, Backwards, Order, Reverse, Rewrite, Sort};

/// The tasks of this crate, in the order in which they are listed to people.
const BUILT_IN: &[fn() -> Kind] = &[
    // a line each
    Kind::of::<Registers>,
    Kind::of::<Mqar>,
    Kind::of::<Reverse>,
    Kind::of::<Sort>,
];

/// The tasks of other crates, in the order of their registration.
static REGISTERED: RwLock<Vec<Kind>> = RwLock::new(vec![]);

/// What is known of a task before there are parameters.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    definition: TypeId,
    default: fn() -> Task,
    read: Read<Task>,
}

impl Kind {
    fn of<T: Definition + Default + DeserializeOwned>() -> Self {
        Self {
            name: T::default().kind(),
            definition: TypeId::of::<T>(),
            default: || Task::new(T::default()),
            read: |entries| parameter::read::<T>(entries).map(Task::new),
        }
    }

    fn keys(&self) -> Vec<&'static str> {
        (self.default)().parameters().into_iter().map(|(key, _)| key).collect()
    }

    /// What a config could not name, or could not tell from something else.
    fn check(&self) -> Result<(), RegisterError> {
        let kind = self.name;
        let is_word = |word: &str| {
            word.starts_with(|first: char| first.is_ascii_lowercase())
                && word.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'))
        };
        if !is_word(kind) {
            return Err(RegisterError::NotAName { kind, word: kind });
        }
        let keys = self.keys();
        for (place, &key) in keys.iter().enumerate() {
            if !is_word(key) {
                return Err(RegisterError::NotAName { kind, word: key });
            }
            if key == "kind" || Sets::KEYS.contains(&key) || keys[..place].contains(&key) {
                return Err(RegisterError::KeyTaken { kind, key });
            }
        }
        Ok(())
    }
}

/// Why a task can't be registered.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum RegisterError {
    /// Another type has the name.
    #[error("there is a task `{kind}` already, of another type")]
    KindTaken {
        /// The name.
        kind: &'static str,
    },
    /// A name that configs and folders can't hold.
    #[error(
        "`{word}` can't be a name in the task `{kind}`: lower-case letters, digits and `_`, beginning with a letter"
    )]
    NotAName {
        /// The task's name.
        kind: &'static str,
        /// That name, or the parameter's.
        word: &'static str,
    },
    /// A parameter whose key means something else in a config's section, or comes twice.
    #[error("the parameter `{key}` of the task `{kind}` has a key that is taken")]
    KeyTaken {
        /// The task's name.
        kind: &'static str,
        /// The parameter.
        key: &'static str,
    },
}

/// Makes the task `T` known under its [`kind`](Definition::kind) in this process, for configs that are read from now on. To
/// register the same type again changes nothing, so whoever needs a task may register it, in whatever order and thread.
///
/// # Errors
/// A name that another type has, and names that a config can't hold.
pub fn register<T: Definition + Default + DeserializeOwned>() -> Result<(), RegisterError> {
    let kind = Kind::of::<T>();
    kind.check()?;
    // Nothing panics while the lock is held, and a list is whole between any two of its operations.
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let built_in = BUILT_IN.iter().map(|kind| kind());
    match built_in.chain(registered.iter().copied()).find(|other| other.name == kind.name) {
        None => registered.push(kind),
        Some(same) if same.definition == kind.definition => {}
        Some(other) => return Err(RegisterError::KindTaken { kind: other.name }),
    }
    Ok(())
}

fn all() -> Vec<Kind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().map(|kind| kind()).chain(registered.iter().copied()).collect()
}

fn find(kind: &str) -> Option<Kind> {
    all().into_iter().find(|candidate| candidate.name == kind)
}

impl Task {
    /// The names of all tasks: those of this crate, then the registered ones.
    pub fn kinds() -> Vec<&'static str> {
        all().into_iter().map(|kind| kind.name).collect()
    }

    /// The config keys of the task `kind`, without `kind`; `None` if there is no such task.
    pub fn keys(kind: &str) -> Option<Vec<&'static str>> {
        find(kind).map(|kind| kind.keys())
    }

    /// The task `kind` with its default parameters; `None` if there is no such task.
    pub fn default_of(kind: &str) -> Option<Self> {
        find(kind).map(|kind| (kind.default)())
    }

    /// This task with another seed at `key`, one of its [`Definition::instance_seeds`]; `None` where it isn't one, the task
    /// isn't registered, or refuses the seed.
    pub fn instance(&self, key: &str, seed: u64) -> Option<Self> {
        if !self.instance_seeds().contains(&key) {
            return None;
        }
        let value =
            |(name, value): (&str, Parameter)| (name.to_string(), if name == key { seed.into() } else { value });
        let entries = self.parameters().into_iter().map(value).collect();
        let instance = (find(self.kind())?.read)(entries).ok()?;
        instance.check().is_ok().then_some(instance)
    }

    /// Reads the parameters of the task `kind` from `deserializer`, which must not hold `kind` itself. Errors have the
    /// deserializer's positions and reasons, as if it had read the parameters' own type. `None` if there is no such task.
    pub fn from_kind<'de, D: Deserializer<'de>>(kind: &str, deserializer: D) -> Option<Result<Self, D::Error>> {
        let kind = find(kind)?;
        Some(parameter::read_section(kind.read, &kind.keys(), deserializer))
    }
}
