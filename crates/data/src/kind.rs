//! What the registries of tasks hold.

use std::any::TypeId;

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::definition::{Definition, Task};
use crate::order::Sets;
use crate::parameter::{self, Read};

/// What is known of a task before there are parameters.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub name: &'static str,
    pub definition: TypeId,
    pub default: fn() -> Task,
    pub read: Read<Task>,
}

impl Kind {
    pub fn of<T: Definition + Default + DeserializeOwned>() -> Self {
        Self {
            name: T::default().kind(),
            definition: TypeId::of::<T>(),
            default: || Task::new(T::default()),
            read: |entries| parameter::read::<T>(entries).map(Task::new),
        }
    }

    pub fn keys(&self) -> Vec<&'static str> {
        (self.default)().parameters().into_iter().map(|(key, _)| key).collect()
    }

    /// # Errors
    /// What a config could not name, or could not tell from something else.
    pub fn check(&self) -> Result<(), RegisterError> {
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
