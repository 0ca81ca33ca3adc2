//! Numbers and text for people: the one place for whatever Headcount prints or draws.

use statistics::context::Unit;

/// Text that can stand in HTML or SVG, as an element's content or within quotes; control characters become blanks.
pub fn escaped(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Lines of at most `most` characters, broken at spaces; a longer word has a line of its own.
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => *line += &format!(" {word}"),
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// A sentence's beginning.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Such as "1 head" or "8 heads".
pub fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// What is counted, by the word for one of it or for many: "head" and "heads" are the same.
pub fn unit(word: &str) -> Unit {
    let is_one_in_s = ["as", "is", "ss", "us"].iter().any(|end| word.ends_with(end));
    match word.strip_suffix('s').filter(|one| !one.is_empty() && !is_one_in_s) {
        Some(one) => Unit::new(one, word),
        None => Unit::new(word, format!("{word}{}", if is_one_in_s { "es" } else { "s" })),
    }
}

/// Such as "3.2 MiB".
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// Three digits that count: three after the point, fewer where there are many before it. Never "-0.000".
pub fn short(number: f64) -> String {
    let digits = match number.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.digits$}");
    if text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) {
        text.trim_start_matches('-').into()
    } else {
        text
    }
}

/// Decimals that show two digits of a width such as a margin, at most 6; three where it is 0.
pub fn decimals(width: f64) -> usize {
    if width <= 0.0 {
        return 3;
    }
    ((-width.log10() - 1e-9).ceil() + 1.0).clamp(0.0, 6.0) as usize
}

/// With so many decimals and its sign: "+0.040", "-0.012", "0.000".
pub fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    if text.chars().all(|c| matches!(c, '+' | '-' | '0' | '.')) {
        text.trim_start_matches(['+', '-']).into()
    } else {
        text
    }
}

/// A level in per cent, two decimals unless they are 0: "95", "98.33".
pub fn percent(level: f64) -> String {
    let shown = format!("{:.2}", 100.0 * level);
    shown.trim_end_matches('0').trim_end_matches('.').into()
}

/// As a sentence counts: "one" to "ten", then digits.
pub fn number_word(number: u64) -> String {
    const WORDS: [&str; 11] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    usize::try_from(number)
        .ok()
        .and_then(|at| WORDS.get(at))
        .map_or_else(|| number.to_string(), |word| word.to_string())
}

/// One noun for many: "heads" of "head".
pub fn counted_word(number: u64, one: &str) -> String {
    format!("{} {one}{}", number_word(number), if number == 1 { "" } else { "s" })
}

/// Part of a config key that people read: `model.d_head` is "d_head".
pub fn key_name(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// A config key with its value in TOML as a sentence begins or goes on: "with one layer", "with 4 registers", "with
/// d_head = 4".
pub fn level(key: &str, value: &str) -> String {
    let name = key_name(key);
    let plain = value.trim_matches('"');
    match (value.parse::<u64>(), name.strip_suffix('s')) {
        (Ok(number), Some(one)) if !name.contains('_') && !matches!(name, "steps") => {
            format!("with {}", counted_word(number, one))
        }
        (Ok(number), _) if name == "steps" => format!("with {}", counted(number as usize, "step")),
        _ => format!("with {name} = {plain}"),
    }
}

/// Several of them: "with two layers and four registers".
pub fn levels<'a>(level: impl Iterator<Item = (&'a String, &'a String)>) -> Option<String> {
    let told: Vec<String> = level.map(|(key, value)| self::level(key, value)).collect();
    let (first, rest) = told.split_first()?;
    let rest = rest.iter().map(|next| format!(" and {}", next.strip_prefix("with ").unwrap_or(next)));
    Some(first.clone() + &rest.collect::<String>())
}

/// Numbers by their size, before whatever is none.
pub fn by_number(a: &str, b: &str) -> std::cmp::Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        (Ok(_), Err(_)) => std::cmp::Ordering::Less,
        (Err(_), Ok(_)) => std::cmp::Ordering::Greater,
        _ => a.cmp(b),
    }
}

/// "4", "4 and 8", "2, 4 and 8".
pub fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Columns padded to equal width, the first to the left and the others to the right.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column).unwrap_or_default();
            if column == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_alone() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensibilities äöü äöü", 7), ["incomprehensibilities", "äöü äöü"]);
        assert!(wrapped("", 7).is_empty());
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([123.4, 12.34, 1.234, 0.1234, -0.0001].map(short), ["123", "12.3", "1.23", "0.123", "0.000"]);
        assert_eq!([0, 1023, 1024, 3 << 20, 5 << 30].map(bytes), ["0 B", "1023 B", "1.0 KiB", "3.0 MiB", "5.0 GiB"]);
        assert_eq!((counted(1, "head"), counted(8, "head")), ("1 head".into(), "8 heads".into()));
        assert_eq!(capital("ärger"), "Ärger");
    }

    /// "4 headss" was said of `--sweep heads`.
    #[test]
    fn what_is_counted_may_be_named_by_one_or_many() {
        for word in ["head", "heads"] {
            assert_eq!(unit(word), Unit::new("head", "heads"));
        }
        assert_eq!((unit("bias"), unit("s")), (Unit::new("bias", "biases"), Unit::new("s", "ss")));
    }

    #[test]
    fn sentences_count_in_words() {
        assert_eq!([percent(0.95), percent(0.9875), percent(0.99)], ["95", "98.75", "99"]);
        assert_eq!([signed(0.04, 3), signed(-0.012, 3), signed(-0.0001, 3)], ["+0.040", "-0.012", "0.000"]);
        assert_eq!([0.02, 0.1, 5.0, 0.0, 1e-12].map(decimals), [3, 2, 1, 3, 6]);
        assert_eq!(
            [level("model.layers", "1"), level("task.registers", "6")],
            ["with one layer", "with six registers"]
        );
        assert_eq!([level("model.d_head", "4"), level("train.steps", "800")], ["with d_head = 4", "with 800 steps"]);
        assert_eq!(
            [level("model.positions", "\"rotary\""), level("a.xs", "12")],
            ["with positions = rotary", "with 12 xs"]
        );
        let two = [("model.layers".to_string(), "2".to_string()), ("task.registers".to_string(), "4".to_string())];
        let told = levels(two.iter().map(|(key, value)| (key, value)));
        assert_eq!(told.as_deref(), Some("with two layers and four registers"));
        assert_eq!(
            (by_number("10", "9"), by_number("x", "9")),
            (std::cmp::Ordering::Greater, std::cmp::Ordering::Greater)
        );
        assert_eq!(listed(&["2".into(), "4".into(), "8".into()]), "2, 4 and 8");
    }

    #[test]
    fn nothing_escapes() {
        assert_eq!(escaped("<a b=\"c\">\u{7}&</a>"), "&lt;a b=&quot;c&quot;&gt; &amp;&lt;/a&gt;");
    }
}
