//! How numbers, sizes and long sentences are written.

use std::time::Duration;

use data::Task;
use data::metrics::Scores;
pub use runs::ledger::thousands;

/// A number of things: `1 thread`, `2 threads`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Three digits that count: `0.123`, `1.23`, `12.3`, `1234`.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A size: `12 B`, `3.3 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} B"),
    }
}

/// Bytes in MiB, rounded up.
pub fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Such as `35.1k tokens/s`.
pub fn rate(tokens_per_second: f64) -> String {
    match tokens_per_second {
        fast if fast >= 1e6 => format!("{:.1}M tokens/s", fast / 1e6),
        fast if fast >= 1e3 => format!("{:.1}k tokens/s", fast / 1e3),
        slow => format!("{slow:.0} tokens/s"),
    }
}

/// Such as `1:05`, `2:03:04`, or `?` where nothing is known.
pub fn duration(duration: Option<Duration>) -> String {
    let Some(seconds) = duration.map(|duration| duration.as_secs_f64().round() as u64) else { return "?".into() };
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// What a step's batch showed; a batch without a scored position shows nothing.
pub fn measured(scores: &Scores) -> String {
    if scores.iter().all(|(_, value)| value.is_nan()) {
        return "nothing scored".into();
    }
    scores.iter().map(|(kind, value)| kind.brief(value)).collect::<Vec<_>>().join(" ")
}

/// Such as "16 tokens, 8 classes, length 32".
pub fn task_sizes(task: &Task) -> String {
    let numbers = task.numbers().unwrap_or_default();
    let of = |numbers: usize, count: usize, what: &str| match numbers {
        0 => format!("{count} {what}"),
        1 => "1 number".into(),
        _ => format!("{numbers} numbers"),
    };
    let read = of(numbers.inputs, task.vocab(), "tokens");
    let said = of(numbers.outputs, task.outputs(), "classes");
    match task.numbers() {
        Some(_) => format!("{read} read, {said} said, length {}", task.seq_len()),
        None => format!("{read}, {said}, length {}", task.seq_len()),
    }
}

/// `text` in lines of at most `width` characters, the first after `first`, the others below it.
pub fn wrapped(first: &str, text: &str, width: usize) -> String {
    let indent = first.chars().count();
    let (mut lines, mut line) = (vec![], first.to_string());
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + word.chars().count() >= width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)).trim_end().to_string());
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line.trim_end().to_string());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use data::metrics::{ACCURACY, LOSS};
    use proptest::prelude::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([count(0, "head"), count(1, "head"), count(2, "head")], ["0 heads", "1 head", "2 heads"]);
        assert_eq!([0.1234, 1.234, 12.34, 123.4, -5.0].map(short), ["0.123", "1.23", "12.3", "123", "-5.00"]);
        let sizes = [0, 1023, 1024, 1 << 20, (1 << 30) - 1, 3 << 30].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "1024.0 MiB", "3.0 GiB"]);
        assert_eq!([0, 1, 1 << 20].map(mib), [0, 1, 1]);
    }

    #[test]
    fn durations_and_rates_read_well() {
        let of = |seconds| duration(Some(Duration::from_secs(seconds)));
        assert_eq!([of(5), of(65), of(7384)], ["0:05", "1:05", "2:03:04"]);
        assert_eq!(duration(None), "?");
        let scores = |loss, accuracy| Scores::default().with(&LOSS, loss).with(&ACCURACY, accuracy);
        assert_eq!(measured(&scores(f64::NAN, f64::NAN)), "nothing scored");
        assert_eq!(measured(&scores(f64::INFINITY, 0.25)), "loss inf accuracy 0.250", "a run that diverges is seen");
        assert_eq!([rate(12.4), rate(35_120.0), rate(2.5e6)], ["12 tokens/s", "35.1k tokens/s", "2.5M tokens/s"]);
    }

    proptest! {
        /// Every word stands once, in its order, on lines that are as long as they may be.
        #[test]
        fn wrapping_keeps_words_and_width(words in prop::collection::vec("[a-zé·]{1,12}", 0..40), width in 24usize..80) {
            let wrapped = wrapped("ok  ", &words.join(" "), width);
            let found: Vec<&str> = wrapped.split_whitespace().skip(1).collect();
            prop_assert_eq!(found, words);
            prop_assert!(wrapped.lines().all(|line| line.chars().count() <= width));
            prop_assert!(wrapped.lines().skip(1).all(|line| line.starts_with("    ")));
        }
    }
}
