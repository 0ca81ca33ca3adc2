//! Seeds as files have them.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::limits;

/// Seeds as a file has them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SeedList {
    /// 0, 1 and so on, so many.
    Count(u64),
    /// These.
    List(Vec<u64>),
}

impl SeedList {
    pub fn len(&self) -> u64 {
        match self {
            Self::Count(count) => *count,
            Self::List(seeds) => seeds.len() as u64,
        }
    }

    /// A list, or as many as a count says; a count that no check would let pass is refused.
    pub fn listed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let seeds = Self::deserialize(deserializer)?;
        match seeds.len() {
            count if count > limits::SEEDS => {
                Err(de::Error::custom(format!("{count} seeds are too many: at most {}", limits::SEEDS)))
            }
            _ => Ok(seeds.into()),
        }
    }
}

impl From<SeedList> for Vec<u64> {
    fn from(seeds: SeedList) -> Self {
        match seeds {
            SeedList::Count(count) => (0..count).collect(),
            SeedList::List(seeds) => seeds,
        }
    }
}

impl<'de> Deserialize<'de> for SeedList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = SeedList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number of seeds or a list of them, each 0 or more")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<SeedList, E> {
                Ok(SeedList::Count(count))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<SeedList, A::Error> {
                let mut seeds = vec![];
                while let Some(seed) = items.next_element()? {
                    seeds.push(seed);
                }
                Ok(SeedList::List(seeds))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
