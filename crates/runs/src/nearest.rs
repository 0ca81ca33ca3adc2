//! The name that was probably meant.

/// The candidate nearest to `name` in edits (insert, delete, replace, swap neighbours), if it is near at all: at most
/// a third of the longer name, letters' case aside. A name that is the beginning of a single candidate counts too.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No key is that long; the distance takes quadratic time.
    if name.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = plain(name);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates.iter().filter_map(|candidate| {
        let distance = strsim::osa_distance(&wanted, &plain(candidate));
        let allowed = (wanted.chars().count().max(candidate.chars().count()) / 3).max(1);
        (distance <= allowed).then_some((distance, *candidate))
    });
    if let Some((_, candidate)) = near.min_by_key(|(distance, _)| *distance) {
        return Some(candidate);
    }
    let mut longer = candidates.iter().filter(|candidate| wanted.len() >= 3 && candidate.starts_with(&wanted));
    match (longer.next(), longer.next()) {
        (Some(candidate), None) => Some(candidate),
        _ => None,
    }
}

/// `` `a`, `b` and `c` ``
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => "none".into(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let keys = ["heads", "kv_heads", "d_model", "layers", "learning_rate"];
        for (name, expected) in [
            ("hedas", Some("heads")),
            ("Heads", Some("heads")),
            ("dmodel", Some("d_model")),
            ("d-model", Some("d_model")),
            ("kvheads", Some("kv_heads")),
            ("learn", Some("learning_rate")),
            ("x", None),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, keys), expected, "{name}");
        }
        assert_eq!(nearest(&"heads".repeat(100_000), keys), None);
    }

    #[test]
    fn lists_read_as_english() {
        assert_eq!(list([]), "none");
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
