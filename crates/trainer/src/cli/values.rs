//! Values of the command line, checked once.

use runs::Backend;

/// Overrides of a config in the order in which they act: `--set` first, then the flags that stand for a key.
pub fn overrides(set: &[String], seed: Option<u64>, backend: Option<Backend>) -> Vec<String> {
    let seed = seed.map(|seed| format!("seed={seed}"));
    let backend = backend.map(|backend| format!("backend={backend}"));
    set.iter().cloned().chain(seed).chain(backend).collect()
}

/// A backend by its name; the error names the nearest.
pub fn parse_backend(name: &str) -> Result<Backend, String> {
    name.parse()
}

/// Tokens of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids(pub Vec<u32>);

/// Numbers between spaces or commas; the error names the word that is none.
pub fn parse_ids(text: &str) -> Result<Ids, String> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let ids = words.map(|word| {
        word.parse().map_err(|_| format!("`{word}` is no token: tokens are numbers from 0, between spaces or commas"))
    });
    ids.collect::<Result<Vec<u32>, String>>().map(Ids)
}

pub fn parse_temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(temperature) if temperature >= 0.0 && temperature.is_finite() => Ok(temperature),
        _ => Err("a temperature is a finite number, at least 0".to_string()),
    }
}

/// A difference that does not matter.
pub fn parse_margin(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(margin) if margin >= 0.0 && margin.is_finite() => Ok(margin),
        _ => Err("a margin is a finite number, at least 0".to_string()),
    }
}

/// A time above 0.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("seconds are a finite number above 0".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_ids_stand_between_spaces_or_commas() {
        assert_eq!(parse_ids(" 3,1, 4\t1 "), Ok(Ids(vec![3, 1, 4, 1])));
        assert_eq!(parse_ids(""), Ok(Ids(vec![])));
        for (text, word) in [("1 x", "`x`"), ("-1", "`-1`"), ("1.5", "`1.5`"), ("4294967296", "`4294967296`")] {
            assert!(parse_ids(text).unwrap_err().contains(word), "{text}");
        }
    }
}
