//! From a tree to typed values: a serde deserializer whose errors keep their key and speak plainly.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{
        self, DeserializeSeed, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess,
        Visitor,
    },
    forward_to_deserialize_any,
};

use super::tree::{KeyNode, KeyPlace, KeyTable, Value};
use crate::nearest::list;

/// Why a value could not be read.
#[derive(Clone, Debug)]
pub(crate) struct ReadError {
    /// Key below the section, outermost last.
    pub keys: Vec<String>,
    /// The node at fault.
    pub place: Option<KeyPlace>,
    pub reason: Reason,
}

#[derive(Clone, Debug)]
pub(crate) enum Reason {
    WrongType { expected: String, found: String },
    UnknownWord { word: String, words: &'static [&'static str] },
    UnknownKey(String),
    MissingKey(String),
    Other(String),
}

impl ReadError {
    fn new(reason: Reason) -> Self {
        Self { keys: vec![], place: None, reason }
    }

    fn inside(mut self, key: &str, node: &KeyNode) -> Self {
        self.keys.push(key.into());
        self.place.get_or_insert_with(|| node.place.clone());
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.reason)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Reason::Other(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Reason::WrongType { expected: plainly(expected), found: found.to_string() })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(word: &str, words: &'static [&'static str]) -> Self {
        Self::new(Reason::UnknownWord { word: word.into(), words })
    }

    fn unknown_field(key: &str, _: &'static [&'static str]) -> Self {
        Self::new(Reason::UnknownKey(key.into()))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(Reason::MissingKey(key.into()))
    }
}

/// What a type expects, for people who don't know Rust.
fn plainly(expected: &dyn Expected) -> String {
    match expected.to_string().as_str() {
        "usize" | "u64" => "a whole number, 0 or more".into(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "isize" | "i64" | "i32" | "i16" | "i8" => "a whole number".into(),
        "f64" | "f32" => "a number".into(),
        "a string" => "text in quotes".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list".into(),
        text if text.starts_with("struct ") => "a section".into(),
        text => text.into(),
    }
}

/// Reads a section, without the keys that `skip` names.
pub(crate) fn section<'a>(table: &'a KeyTable, skip: &'a [&'a str]) -> SectionReader<'a> {
    SectionReader { table, skip }
}

/// Reads one value; `key` is its name within the section.
pub(crate) fn value<'a, T: Deserialize<'a>>(key: &str, node: &'a KeyNode) -> Result<T, ReadError> {
    T::deserialize(node).map_err(|error| error.inside(key, node))
}

/// See [`section`].
pub(crate) struct SectionReader<'a> {
    table: &'a KeyTable,
    skip: &'a [&'a str],
}

impl<'de> Deserializer<'de> for SectionReader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let skip = self.skip;
        let entries = self.table.iter().filter(move |(key, _)| !skip.contains(&key.as_str()));
        visitor.visit_map(Entries { entries, value: None })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Entries<'de, I> {
    entries: I,
    value: Option<(&'de str, &'de KeyNode)>,
}

impl<'de, I: Iterator<Item = (&'de String, &'de KeyNode)>> MapAccess<'de> for Entries<'de, I> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some((key, node)) = self.entries.next() else { return Ok(None) };
        self.value = Some((key, node));
        let deserializer: de::value::StrDeserializer<'_, ReadError> = key.as_str().into_deserializer();
        seed.deserialize(deserializer).map(Some).map_err(|error| ReadError { place: Some(node.place.clone()), ..error })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        match self.value.take() {
            Some((key, node)) => seed.deserialize(node).map_err(|error| error.inside(key, node)),
            None => Err(de::Error::custom("a value without a key")),
        }
    }
}

struct Items<'de>(std::slice::Iter<'de, KeyNode>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }
}

impl<'de> Deserializer<'de> for &'de KeyNode {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        // What each visitor refuses is described by the node, not by serde's words.
        let found = || Unexpected::Other(self.value.kind());
        match &self.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Boolean(boolean) => visitor.visit_bool(*boolean),
            Value::Float(float) => visitor.visit_f64(*float),
            Value::List(items) => visitor.visit_seq(Items(items.iter())),
            Value::Table(table) => section(table, &[]).deserialize_any(visitor),
            Value::Date => Err(de::Error::invalid_type(found(), &visitor)),
            Value::Integer(integer) => {
                let unsigned = integer.and_then(|integer| u64::try_from(integer).ok());
                let signed = integer.and_then(|integer| i64::try_from(integer).ok());
                match (unsigned, signed) {
                    (Some(unsigned), _) => visitor.visit_u64(unsigned),
                    (None, Some(signed)) => visitor.visit_i64(signed),
                    (None, None) => Err(de::Error::invalid_value(found(), &visitor)),
                }
            }
        }
        .map_err(|error: ReadError| match error.reason {
            Reason::WrongType { expected, .. } if error.keys.is_empty() && error.place.is_none() => {
                ReadError::new(Reason::WrongType { expected, found: self.value.kind().into() })
            }
            _ => error,
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.value {
            Value::Text(word) => visitor.visit_enum(Word(word)),
            other => Err(ReadError::new(Reason::WrongType {
                expected: format!("one of the words {}", list(words.iter().copied())),
                found: other.kind().into(),
            })),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// A word that names a variant without data.
struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), ReadError> {
        let deserializer: de::value::BorrowedStrDeserializer<'de, ReadError> =
            de::value::BorrowedStrDeserializer::new(self.0);
        seed.deserialize(deserializer).map(|variant| (variant, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, ReadError> {
        Err(de::Error::custom(format!("`{}` needs a value", self.0)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ReadError> {
        Err(de::Error::custom(format!("`{}` needs values", self.0)))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, ReadError> {
        Err(de::Error::custom(format!("`{}` needs keys", self.0)))
    }
}

/// The keys that a section's type knows, as serde's derived code names them.
pub(crate) fn keys_of<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    struct Ask;

    #[derive(Debug)]
    struct Keys(&'static [&'static str]);

    impl fmt::Display for Keys {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Debug::fmt(self, f)
        }
    }
    impl std::error::Error for Keys {}
    impl de::Error for Keys {
        fn custom<M: fmt::Display>(_: M) -> Self {
            Self(&[])
        }
    }

    impl<'de> Deserializer<'de> for Ask {
        type Error = Keys;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Keys> {
            Err(Keys(&[]))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            keys: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Keys> {
            Err(Keys(keys))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    T::deserialize(Ask).err().map_or(&[], |Keys(keys)| keys)
}
