//! A parameter's value as data, and how one is read without knowing its type, the positions of errors kept.

use std::fmt::{self, Write as _};

use serde::de::value::{MapDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{self, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Serialize, forward_to_deserialize_any};

/// The value of one parameter of a task, as a config holds it. `Display` is the text that goes into random keys and
/// fingerprints: the same for the same value only.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// True or false.
    Boolean(bool),
    /// A whole number of 0 or more.
    Unsigned(u64),
    /// A whole number below 0.
    Signed(i64),
    /// Any other number.
    Float(f64),
    /// Text, or one word of a closed list.
    Text(String),
    /// Several values.
    List(Vec<Parameter>),
    /// Values with keys of their own, in the order in which they are written.
    Table(Vec<(String, Parameter)>),
}

impl From<bool> for Parameter {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<u64> for Parameter {
    fn from(value: u64) -> Self {
        Self::Unsigned(value)
    }
}

impl From<usize> for Parameter {
    fn from(value: usize) -> Self {
        Self::Unsigned(value as u64)
    }
}

impl From<f64> for Parameter {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Parameter {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(formatter, "{value}"),
            Self::Unsigned(value) => write!(formatter, "{value}"),
            Self::Signed(value) => write!(formatter, "{value}"),
            Self::Float(value) => write!(formatter, "{value:?}"),
            Self::Text(value) => value.chars().try_for_each(|letter| match letter {
                '\\' => formatter.write_str("\\\\"),
                control if control.is_control() => write!(formatter, "{}", control.escape_default()),
                plain => formatter.write_char(plain),
            }),
            Self::List(values) => formatter.debug_list().entries(values).finish(),
            Self::Table(entries) => formatter.debug_list().entries(entries).finish(),
        }
    }
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(values) => serializer.collect_seq(values),
            Self::Table(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}

impl Parameter {
    /// As errors of serde call it.
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Boolean(value) => Unexpected::Bool(*value),
            Self::Unsigned(value) => Unexpected::Unsigned(*value),
            Self::Signed(value) => Unexpected::Signed(*value),
            Self::Float(value) => Unexpected::Float(*value),
            Self::Text(value) => Unexpected::Str(value),
            Self::List(_) => Unexpected::Seq,
            Self::Table(_) => Unexpected::Map,
        }
    }
}

/// A key and its value.
pub(crate) type Entry = (String, Parameter);

/// Reads a type from entries that are already data.
pub(crate) type Read<T> = fn(Vec<Entry>) -> Result<T, Fault>;

/// [`Read`] for any type with serde's derived code.
pub(crate) fn read<T: de::DeserializeOwned>(entries: Vec<Entry>) -> Result<T, Fault> {
    T::deserialize(table(entries))
}

/// Reads a section with `keys` from `deserializer` by way of `read`. Each value is tried as soon as it is there, while the
/// deserializer still knows where it stands, so errors have the positions that a derived `Deserialize` gives them.
pub(crate) fn read_section<'de, T, D: Deserializer<'de>>(
    read: Read<T>,
    keys: &[&str],
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(Section { read, keys })
}

struct Section<'a, T> {
    read: Read<T>,
    keys: &'a [&'a str],
}

impl<'de, T> Visitor<'de> for Section<'_, T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a section")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut entries: Vec<Entry> = vec![];
        while let Some(key) = map.next_key_seed(Key { read: self.read, keys: self.keys })? {
            if entries.iter().any(|(earlier, _)| *earlier == key) {
                return Err(de::Error::custom(format_args!("duplicate field `{key}`")));
            }
            let value = map.next_value_seed(Tried { read: self.read, key: &key })?;
            entries.push((key, value));
        }
        (self.read)(entries).map_err(|fault| fault.raise(Unexpected::Map))
    }
}

/// A key that must be one of `keys`.
struct Key<'a, T> {
    read: Read<T>,
    keys: &'a [&'a str],
}

impl<'de, T> de::DeserializeSeed<'de> for Key<'_, T> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<T> Visitor<'_> for Key<'_, T> {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<String, E> {
        if self.keys.contains(&key) {
            return Ok(key.into());
        }
        // The type lists the keys that it knows.
        match (self.read)(vec![(key.into(), Parameter::Table(vec![]))]) {
            Err(Fault::UnknownKey(_, keys)) => Err(E::unknown_field(key, keys)),
            _ => Err(E::unknown_field(key, &[])),
        }
    }
}

/// A value that `read` must take under `key`.
struct Tried<'a, T> {
    read: Read<T>,
    key: &'a str,
}

impl<T> Tried<'_, T> {
    fn check<E: de::Error>(&self, value: Parameter) -> Result<Parameter, E> {
        match (self.read)(vec![(self.key.into(), value.clone())]) {
            // Other keys may come later; one that never does is missed at the end.
            Ok(_) | Err(Fault::Missing(_)) => Ok(value),
            Err(fault) => Err(fault.raise(value.unexpected())),
        }
    }
}

impl<'de, T> de::DeserializeSeed<'de> for Tried<'_, T> {
    type Value = Parameter;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parameter, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T> Visitor<'de> for Tried<'_, T> {
    type Value = Parameter;

    /// What the type expects, which it says when it gets what no type takes.
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.read)(vec![(self.key.into(), Parameter::Table(vec![]))]) {
            Err(Fault::WrongType(expected) | Fault::WrongValue(expected)) => formatter.write_str(&expected),
            _ => formatter.write_str("a value"),
        }
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Parameter, E> {
        self.check(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Parameter, E> {
        self.check(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Parameter, E> {
        self.check(signed(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Parameter, E> {
        self.check(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Parameter, E> {
        self.check(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Parameter, A::Error> {
        self.check(Any.visit_seq(items)?)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Parameter, A::Error> {
        self.check(Any.visit_map(entries)?)
    }
}

fn signed(value: i64) -> Parameter {
    u64::try_from(value).map_or(Parameter::Signed(value), Parameter::Unsigned)
}

/// A value within a list or a table, which is tried with the whole of it.
struct Any;

impl<'de> de::DeserializeSeed<'de> for Any {
    type Value = Parameter;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parameter, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Parameter;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, text, true, false, a list or a table")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Parameter, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Parameter, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Parameter, E> {
        Ok(signed(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Parameter, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Parameter, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parameter, A::Error> {
        let mut list = vec![];
        while let Some(item) = items.next_element_seed(Any)? {
            list.push(item);
        }
        Ok(Parameter::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Parameter, A::Error> {
        let mut table = vec![];
        while let Some(key) = entries.next_key::<String>()? {
            table.push((key, entries.next_value_seed(Any)?));
        }
        Ok(Parameter::Table(table))
    }
}

/// Why a type refuses an entry: serde's reasons, kept apart so that another deserializer can raise the same.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The type expected.
    WrongType(String),
    /// The values expected.
    WrongValue(String),
    UnknownWord(String, &'static [&'static str]),
    UnknownKey(String, &'static [&'static str]),
    Missing(&'static str),
    Other(String),
}

impl Fault {
    /// As an error of another deserializer, which found `found`.
    fn raise<E: de::Error>(self, found: Unexpected<'_>) -> E {
        match self {
            Self::WrongType(expected) => E::invalid_type(found, &expected.as_str()),
            Self::WrongValue(expected) => E::invalid_value(found, &expected.as_str()),
            Self::UnknownWord(word, words) => E::unknown_variant(&word, words),
            Self::UnknownKey(key, keys) => E::unknown_field(&key, keys),
            Self::Missing(key) => E::missing_field(key),
            Self::Other(message) => E::custom(message),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self::Other(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::WrongType(expected.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::WrongValue(expected.to_string())
    }

    fn unknown_variant(word: &str, words: &'static [&'static str]) -> Self {
        Self::UnknownWord(word.into(), words)
    }

    fn unknown_field(key: &str, keys: &'static [&'static str]) -> Self {
        Self::UnknownKey(key.into(), keys)
    }

    fn missing_field(key: &'static str) -> Self {
        Self::Missing(key)
    }
}

/// A value that types read themselves from.
struct Held(Parameter);

fn table(entries: Vec<Entry>) -> MapDeserializer<'static, impl Iterator<Item = (String, Held)>, Fault> {
    MapDeserializer::new(entries.into_iter().map(|(key, value)| (key, Held(value))))
}

impl IntoDeserializer<'_, Fault> for Held {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Held {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Parameter::Boolean(value) => visitor.visit_bool(value),
            Parameter::Unsigned(value) => visitor.visit_u64(value),
            Parameter::Signed(value) => visitor.visit_i64(value),
            Parameter::Float(value) => visitor.visit_f64(value),
            Parameter::Text(value) => visitor.visit_string(value),
            Parameter::List(values) => visitor.visit_seq(SeqDeserializer::new(values.into_iter().map(Held))),
            Parameter::Table(entries) => visitor.visit_map(table(entries)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0 {
            Parameter::Text(word) => visitor.visit_enum(StringDeserializer::new(word)),
            _ => Err(Fault::WrongType(format!("one of the words {}", listed(words)))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// `` `a`, `b` and `c` ``
fn listed(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, rest @ [_, ..])) => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Typed {
        needed: u8,
        #[serde(default)]
        ratio: Option<f64>,
        #[serde(default)]
        word: Word,
        #[serde(default)]
        columns: Vec<String>,
        #[serde(default)]
        limits: std::collections::BTreeMap<String, (i32, i32)>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        #[default]
        First,
        SecondOne,
    }

    const KEYS: &[&str] = &["needed", "ratio", "word", "columns", "limits"];

    fn both(text: &str) -> [Result<Typed, String>; 2] {
        let source = || toml::de::Deserializer::parse(text).unwrap();
        [read_section(read::<Typed>, KEYS, source()), Typed::deserialize(source())]
            .map(|read| read.map_err(|error| error.to_string()))
    }

    #[test]
    fn what_is_right_is_read_as_serde_reads_it() {
        let long = "word = 'second_one'\ncolumns = ['a', 'b']\nneeded = 3\nratio = 2\nlimits = { x = [-1, 5] }";
        for text in ["needed = 0", long] {
            let [ours, serdes] = both(text);
            assert_eq!(ours, serdes);
            assert!(ours.is_ok(), "{ours:?}");
        }
    }

    /// Message, line and column are those of a derived `Deserialize`.
    #[test]
    fn what_is_wrong_is_refused_as_serde_refuses_it() {
        for text in [
            "",
            "ratio = 1.5",
            "needed = 'x'",
            "needed = -1",
            "needed = 256",
            "needed = 1.0",
            "needed = [1]",
            "needed = { a = 1 }",
            "needed = 1\n\nword = 'third'",
            "needed = 1\nratio = true",
            "needed = 1\ncolumns = 'a'",
            "needed = 1\nlimits = [1]",
            "needed = 1\n  other = 1",
        ] {
            let [ours, serdes] = both(text);
            assert_eq!(ours.unwrap_err(), serdes.unwrap_err());
        }
    }

    /// Within lists and tables the place is that of the whole value.
    #[test]
    fn what_is_wrong_within_a_value_is_refused_there() {
        for (text, part) in
            [("needed = 1\ncolumns = ['a', 3]", "`3`"), ("needed = 1\nlimits = { x = ['y', 1] }", "string \"y\"")]
        {
            let [ours, serdes] = both(text);
            let (ours, serdes) = (ours.unwrap_err(), serdes.unwrap_err());
            assert!(ours.contains("line 2") && serdes.contains(part), "{ours}\n{serdes}");
        }
    }

    #[test]
    fn text_is_the_same_for_the_same_value_only() {
        let values: [Parameter; 9] = [
            "a\nb".into(),
            "a\\nb".into(),
            "a\\\nb".into(),
            "é".into(),
            1u64.into(),
            1.0.into(),
            Parameter::List(vec!["a".into(), "b".into()]),
            Parameter::List(vec!["a, b".into()]),
            Parameter::Table(vec![("a".into(), true.into())]),
        ];
        let texts: std::collections::HashSet<String> = values.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), values.len(), "{texts:?}");
        assert!(texts.iter().all(|text| !text.contains('\n')), "{texts:?}");
    }
}
