//! Numbers and text for people: the one place for whatever Headcount prints or draws.

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

/// The first characters of a commit, which may come from anywhere.
pub fn short_commit(commit: &str) -> String {
    commit.chars().take(10).collect()
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
        assert_eq!((short_commit("0123456789abcdef"), short_commit("äöü")), ("0123456789".into(), "äöü".into()));
        assert_eq!(capital("ärger"), "Ärger");
    }

    #[test]
    fn nothing_escapes() {
        assert_eq!(escaped("<a b=\"c\">\u{7}&</a>"), "&lt;a b=&quot;c&quot;&gt; &amp;&lt;/a&gt;");
    }
}
