//! The tasks that there are. To add one: a file beside this one that implements [`Definition`], its `mod` line and its line in
//! `BUILT_IN`. Another crate adds its own with [`register`].

mod d_retrieval;
mod farthest;
mod induction;
mod mqar;
mod registers;
mod rewrite;
mod selective_copy;

use std::sync::{PoisonError, RwLock};

use serde::Deserializer;
use serde::de::DeserializeOwned;

use crate::definition::{Definition, Task};
use crate::files;
use crate::kind::Kind;
use crate::parameter::{self, Parameter};

pub use crate::kind::RegisterError;
pub use d_retrieval::DRetrieval;
pub use farthest::Farthest;
pub use induction::Induction;
pub use mqar::{Fill, Mqar};
pub use registers::Registers;
pub use rewrite::{Ascending, Backwards, Order, Reverse, Rewrite, Sort};
pub use selective_copy::SelectiveCopy;

/// The tasks of this crate, in the order in which they are listed to people.
const BUILT_IN: &[fn() -> Kind] = &[
    // a line each
    Kind::of::<Registers>,
    Kind::of::<Mqar>,
    Kind::of::<Reverse>,
    Kind::of::<Sort>,
    Kind::of::<Induction>,
    Kind::of::<SelectiveCopy>,
    Kind::of::<DRetrieval>,
    Kind::of::<Farthest>,
];

/// The tasks of other crates, in the order of their registration.
static REGISTERED: RwLock<Vec<Kind>> = RwLock::new(vec![]);

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
    let built_in = BUILT_IN.iter().chain(files::KINDS).map(|kind| kind());
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
    all().into_iter().chain(files::KINDS.iter().map(|kind| kind())).find(|candidate| candidate.name == kind)
}

impl Task {
    /// The names of all tasks whose samples are generated: those of this crate, then the registered ones.
    pub fn kinds() -> Vec<&'static str> {
        all().into_iter().map(|kind| kind.name).collect()
    }

    /// The names of the tasks whose samples lie in files, which have to be named and [opened](Definition::open).
    pub fn file_kinds() -> Vec<&'static str> {
        files::KINDS.iter().map(|kind| kind().name).collect()
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
        let instance = if self.readout() { instance.with_readout() } else { instance };
        instance.check().is_ok().then_some(instance)
    }

    /// Reads the parameters of the task `kind` from `deserializer`, which must not hold `kind` itself. Errors have the
    /// deserializer's positions and reasons, as if it had read the parameters' own type. `None` if there is no such task.
    pub fn from_kind<'de, D: Deserializer<'de>>(kind: &str, deserializer: D) -> Option<Result<Self, D::Error>> {
        let kind = find(kind)?;
        Some(parameter::read_section(kind.read, &kind.keys(), deserializer))
    }
}
