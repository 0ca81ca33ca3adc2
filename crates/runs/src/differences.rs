//! In what two configs differ, key by key.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{config::Config, document::leaves};

/// What stands for a value where there is none.
pub const NOT_SET: &str = "not set";

/// A key that two configs have otherwise. Values are TOML, or [`NOT_SET`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Its full path, such as `model.heads`.
    pub key: String,
    /// Its value in the first of the two.
    pub value: String,
    /// Its value in the second.
    pub other: String,
}

/// The keys in which two configs differ, in the order of the file; none where they are equal.
pub fn between(first: &Config, second: &Config) -> Vec<Difference> {
    between_texts(&first.to_toml(), &second.to_toml())
}

/// [`between`], by the texts of resolved configs.
pub(crate) fn between_texts(first: &str, second: &str) -> Vec<Difference> {
    let (first, second) = (leaves(first), leaves(second));
    let value = |leaves: &[(String, String)], key: &str| {
        leaves.iter().find(|(name, _)| name == key).map_or(NOT_SET.to_string(), |(_, value)| value.clone())
    };
    let mut seen = BTreeSet::new();
    let keys = first.iter().chain(&second).map(|(key, _)| key).filter(|key| seen.insert(key.as_str()));
    keys.map(|key| Difference { key: key.clone(), value: value(&first, key), other: value(&second, key) })
        .filter(|difference| difference.value != difference.other)
        .collect()
}

/// In words: "train.lr: 0.003 there, 0.01 here" for `first` = "there" and `second` = "here".
pub fn render(differences: &[Difference], first: &str, second: &str) -> String {
    let words = |Difference { key, value, other }: &Difference| {
        let (key, value, other) = (cut(key), cut(value), cut(other));
        format!("{key}: {value} {first}, {other} {second}")
    };
    differences.iter().map(words).collect::<Vec<_>>().join("; ")
}

/// Text from elsewhere may be of any length, what is said of it is read by people: longer than any hash it is cut, between
/// two characters.
fn cut(text: &str) -> String {
    const MOST: usize = 100;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}… ({} characters)", text.get(..end).unwrap_or_default(), text.chars().count()),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_length_is_cut_between_characters() {
        let long = |letter: &str| letter.repeat(5000);
        let found = Difference { key: "name".into(), value: long("€"), other: "\"h8\"".into() };
        let expected = format!("name: {}… (5000 characters) there, \"h8\" here", "€".repeat(100));
        assert_eq!(render(&[found], "there", "here"), expected);
        let hash = "0".repeat(64);
        let found = Difference { key: long("k"), value: hash.clone(), other: hash.clone() };
        assert!(render(&[found], "there", "here").ends_with(&format!(": {hash} there, {hash} here")));
    }

    #[test]
    fn differences_are_listed_in_the_order_of_the_file_and_rendered() {
        let config = |text: &str| Config::parse(text, "h8.toml").unwrap();
        let first = config("seed = 1\n[task]\nkind = \"registers\"\n[model]\nkv_heads = 2\n");
        let second = config("name = \"h4\"\n[task]\nkind = \"registers\"\n[model]\nheads = 4\n");
        let found = between(&first, &second);
        insta::assert_snapshot!(render(&found, "there", "here"), @r#"name: "h8" there, "h4" here; seed: 1 there, 0 here; model.heads: 8 there, 4 here; model.kv_heads: 2 there, not set here"#);
        assert_eq!(between(&first, &first), []);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Difference>>(&text).unwrap(), found);
    }
}
