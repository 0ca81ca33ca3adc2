//! Numbers as sentences show them.

/// A count with its noun: "1 pair", "10 pairs".
pub(crate) fn count(number: usize, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// A level in per cent, two decimals unless they are 0: "95", "98.33".
pub(crate) fn percent(level: f64) -> String {
    let shown = format!("{:.2}", 100.0 * level);
    shown.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share in whole per cent: "39".
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

/// A value with so many decimals; "-0.000" is 0.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    let shown = format!("{value:.digits$}");
    match shown.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        _ => shown,
    }
}

/// Decimal places that show two digits of a width, at most 9; three for a width of 0.
pub(crate) fn decimals_of(width: f64) -> usize {
    if width == 0.0 {
        return 3;
    }
    // Nudged, so that a width of 0.01 that came out as 0.0099999 shows as many digits.
    ((-width.log10() - 1e-9).ceil() + 1.0).clamp(0.0, 9.0) as usize
}

/// "4", "4 and 8", "2, 4 and 8".
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// With its first letter a capital.
pub(crate) fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([percent(0.95), percent(0.9833333), percent(0.9)], ["95", "98.33", "90"]);
        assert_eq!([whole_percent(0.393), whole_percent(1.0)], ["39", "100"]);
        assert_eq!([fixed(-0.0001, 3), fixed(-0.5, 1)], ["0.000", "-0.5"]);
        assert_eq!([decimals_of(0.02), decimals_of(0.01), decimals_of(0.5), decimals_of(0.0)], [3, 3, 2, 3]);
        assert_eq!(listed(&["2".into(), "4".into(), "8".into()]), "2, 4 and 8");
        assert_eq!([count(1, "pair"), count(2, "pair")], ["1 pair", "2 pairs"]);
        assert_eq!([capitalised("über"), capitalised("")], ["Über", ""]);
    }
}
