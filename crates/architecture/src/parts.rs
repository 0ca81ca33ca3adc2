//! Numbers by part of a model.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};

/// A number by part, in an order that means something, with the total. In JSON it is an object of the parts that ends
/// with `total`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    parts: Vec<(String, u64)>,
}

/// Key of the sum in JSON.
const TOTAL: &str = "total";

impl Parts {
    /// Adds to a part; a new one comes last. A sum that doesn't fit stays at the largest number.
    pub fn add(&mut self, part: &str, number: u64) {
        match self.parts.iter_mut().find(|(name, _)| name == part) {
            Some((_, sum)) => *sum = sum.saturating_add(number),
            None => self.parts.push((part.into(), number)),
        }
    }

    /// The number of a part; 0 if there is no such part.
    pub fn get(&self, part: &str) -> u64 {
        self.iter().find(|(name, _)| *name == part).map_or(0, |(_, number)| number)
    }

    /// Parts and their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.parts.iter().map(|(part, number)| (part.as_str(), *number))
    }

    /// The sum over all parts.
    pub fn total(&self) -> u64 {
        self.iter().fold(0, |sum, (_, number)| sum.saturating_add(number))
    }
}

impl<P: AsRef<str>> FromIterator<(P, u64)> for Parts {
    fn from_iter<I: IntoIterator<Item = (P, u64)>>(parts: I) -> Self {
        let mut collected = Self::default();
        parts.into_iter().for_each(|(part, number)| collected.add(part.as_ref(), number));
        collected
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.parts.len() + 1))?;
        self.iter().try_for_each(|(part, number)| map.serialize_entry(part, &number))?;
        map.serialize_entry(TOTAL, &self.total())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Parts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "numbers by part with their total")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
                let (mut parts, mut total) = (Parts::default(), None);
                while let Some((part, number)) = map.next_entry::<String, u64>()? {
                    if part == TOTAL { total = Some(number) } else { parts.add(&part, number) }
                }
                match total {
                    Some(total) if total == parts.total() => Ok(parts),
                    Some(total) => {
                        Err(de::Error::custom(format!("total = {total}, but the parts add up to {}", parts.total())))
                    }
                    None => Err(de::Error::missing_field(TOTAL)),
                }
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_order_and_never_overflow() {
        let mut parts: Parts = [("b", 1), ("a", 2), ("b", 3)].into_iter().collect();
        assert_eq!(parts.iter().collect::<Vec<_>>(), [("b", 4), ("a", 2)]);
        assert_eq!((parts.get("b"), parts.get("z"), parts.total()), (4, 0, 6));
        parts.add("a", u64::MAX);
        assert_eq!(parts.total(), u64::MAX);
        assert_eq!(serde_json::from_str::<Parts>(&serde_json::to_string(&parts).unwrap()).unwrap(), parts);
    }
}
