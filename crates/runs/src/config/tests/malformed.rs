//! More than 200 malformed configs: each gives one readable error.

use super::*;
use std::fs;

/// A wrong config, and the key that its error must name.
struct Malformed {
    text: String,
    key: String,
}

/// All keys of a task's config, as `(section, key, value)`.
fn keys(text: &str) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut keys = vec![];
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').into();
        } else if let Some((key, value)) = line.split_once(" = ") {
            keys.push((section.clone(), key.into(), value.into()));
        }
    }
    keys
}

/// The tasks whose samples are generated.
fn kinds() -> Vec<&'static str> {
    Task::kinds()
}

/// The complete config with every optional key set.
fn complete(kind: &str) -> String {
    let architecture = match Task::default_of(kind).and_then(|task| task.source()) {
        Some(_) => "encoder_decoder",
        None => "decoder",
    };
    let model = format!("[model]\narchitecture = \"{architecture}\"\nkv_heads = 8\nd_head = 8\nd_ff = 256\n");
    let train = "[train]\ncheckpoint_every = 10\nkeep_checkpoints = 2\n";
    let text = format!("[task]\nkind = \"{kind}\"\ntrain_examples = 100\n{model}{train}");
    Config::parse(&text, "arm.toml").unwrap().to_toml()
}

fn replace(text: &str, section: &str, key: &str, with: impl Fn(&str) -> String) -> String {
    let mut current = "";
    let lines = text.lines().map(|line| {
        if let Some(name) = line.strip_prefix('[') {
            current = name.trim_end_matches(']');
        }
        match line.split_once(" = ") {
            Some((found, _)) if current == section && found == key => with(line),
            _ => line.to_string(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn malformed(kind: &str) -> Vec<Malformed> {
    let text = complete(kind);
    let mut all = vec![];
    for (section, key, value) in keys(&text) {
        let full = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
        let key_name = key.clone();
        let mut change = |with: &dyn Fn(&str) -> String, key: &str| {
            all.push(Malformed { text: replace(&text, &section, &key_name, with), key: key.into() });
        };
        // Typos: a letter doubled, one lost, another case.
        let mut typos = vec![format!("{key}{}", key.chars().last().unwrap()), key.to_uppercase()];
        typos.extend(key.get(1..).filter(|rest| !rest.is_empty()).map(String::from));
        for typo in typos {
            let shown = if section.is_empty() { typo.clone() } else { format!("{section}.{typo}") };
            // Without its kind a task has no keys to compare with; the kind is then what is missing.
            let shown = if full == "task.kind" { "task.kind".into() } else { shown };
            change(&|line| line.replacen(&key, &typo, 1), &shown);
        }
        // Wrong types, and values that no number can have.
        let is_text = value.starts_with('"');
        let is_float = value.contains('.');
        let mut values = vec!["[1]", "{ a = 1 }", "1979-05-27", "nan", "[[[]]]"];
        values.extend(if is_text {
            vec!["1", "true", "\"no/such\\u0009word\"", "\"\""]
        } else {
            vec!["\"1\"", "\"\""]
        });
        if !is_text && value != "true" && value != "false" {
            values.extend([
                "true",
                "-1",
                "99999999999999999999",
                "340282366920938463463374607431768211456",
                "inf",
                "-inf",
            ]);
            values.extend(["18446744073709551615", "1e300"]);
            if !is_float {
                values.extend(["1.5", "1.0"]);
            }
        }
        for value in values {
            change(&|_| format!("{key} = {value}"), &full);
        }
        // The key twice, and the file cut off after the key.
        change(&|line| format!("{line}\n{line}"), &key);
        let cut = text.find(&format!("{key} = {value}")).unwrap() + key.len() + 3;
        all.push(Malformed { text: text.get(..cut).unwrap().into(), key });
    }
    all
}

#[test]
fn two_hundred_malformed_configs_give_one_readable_error_each() {
    let mut count = 0;
    for kind in kinds() {
        for Malformed { text, key } in malformed(kind) {
            let error = match Config::parse(&text, "configs/arm.toml") {
                Err(error) => error,
                Ok(_) => panic!("accepted, although `{key}` is wrong:\n{text}"),
            };
            assert_readable(&error, "configs/arm.toml:", Some(&key));
            assert_eq!(error.diagnostics().len(), 1, "{error}");
            count += 1;
        }
    }
    println!("{count} malformed configs");
    assert!(count >= 200, "{count}");
}

/// One character lost, doubled, put in, changed or swapped, in any key of any task: refused, with the key that was meant; or,
/// where another is as near, such as `beta2` for `beta3`, with that one.
#[test]
fn a_thousand_typos_are_refused_with_the_right_suggestion() {
    let mut state = 1u64;
    let mut below = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    let texts: Vec<String> = kinds().into_iter().map(complete).collect();
    let (mut tried, mut others) = (0, 0);
    while tried < 1000 {
        let text = &texts[below(texts.len())];
        let keys = keys(text);
        let (section, key, _) = &keys[below(keys.len())];
        let mut typo: Vec<char> = key.chars().collect();
        let (at, letter) = (below(typo.len()), char::from(b"abcdefghijklmnopqrstuvwxyz0123456789_"[below(37)]));
        match below(5) {
            0 => drop(typo.remove(at)),
            1 => typo.insert(at, typo[at]),
            2 => typo.insert(at, letter),
            3 => typo[at] = letter,
            _ => typo.swap(at.min(key.len() - 2), at.min(key.len() - 2) + 1),
        }
        let typo: String = typo.into_iter().collect();
        // Without its kind a task has no keys to compare with.
        let is_key = keys.iter().any(|(other, key, _)| other == section && *key == typo);
        if typo.is_empty() || is_key || key == "kind" {
            continue;
        }
        tried += 1;
        let text = replace(text, section, key, |line| line.replacen(key.as_str(), &typo, 1));
        let error = Config::parse(&text, "arm.toml").unwrap_err();
        let full = |key: &str| if section.is_empty() { key.to_string() } else { format!("{section}.{key}") };
        assert_eq!(error.key(), Some(full(&typo).as_str()), "{error}");
        let help = &error.diagnostics()[0].help[0];
        if *help == format!("did you mean `{}`?", full(key)) {
            continue;
        }
        let meant = help.strip_prefix("did you mean `").and_then(|rest| rest.strip_suffix("`?"));
        let meant = meant.unwrap_or_else(|| panic!("`{typo}` for `{key}`: {help}"));
        let meant = meant.rsplit('.').next().unwrap();
        let distance = |key: &str| strsim::osa_distance(key, &typo);
        assert!(distance(meant) <= distance(key), "`{typo}` for `{key}`: {help}");
        others += 1;
    }
    assert!(others <= 50, "{others} of {tried} could have been another key");
}

#[test]
fn malformed_structure_gives_one_readable_error() {
    let deep = |open: &str, close: &str, depth: usize| format!("x = {}{}", open.repeat(depth), close.repeat(depth));
    let cases: Vec<(String, &str)> = vec![
        ("".into(), "empty"),
        (" \n\t\r\n".into(), "empty"),
        ("# a comment\n".into(), "missing section `[task]`"),
        ("name = \"h8\"\n".into(), "missing section `[task]`"),
        ("[task]\n".into(), "missing key `task.kind`"),
        ("[task]\nregisters = 4\n".into(), "missing key `task.kind`"),
        ("[tsak]\nkind = \"mqar\"\n".into(), "did you mean `task`?"),
        ("[[task]]\nkind = \"mqar\"\n".into(), "expected a section"),
        ("task = 3\n".into(), "expected a section"),
        ("[task]\nkind = \"mqar\"\n[task]\n".into(), "task"),
        ("[task]\nkind = \"mqar\"\n[model.heads]\n".into(), "model.heads"),
        ("[task]\nkind = \"mqar\"\n[model.heads.x.y]\nz = 1\n".into(), "model.heads"),
        ("[task]\nkind = \"mqar\"\nheads = 3\n".into(), "model.heads"),
        ("heads = 3\n[task]\nkind = \"mqar\"\n".into(), "model.heads"),
        ("[task]\nkind = \"mqar\"\nseed = 3\n".into(), "at the top"),
        ("[task".into(), "arm.toml:1"),
        ("[task]\nkind = \"mqar".into(), "arm.toml:2"),
        ("[task]\nkind = 'mqar'\n[model]\nheads 8\n".into(), "arm.toml:4"),
        ("[task]\nkind = '''mqar".into(), "arm.toml"),
        ("{\"task\": {\"kind\": \"mqar\"}}".into(), "arm.toml:1"),
        ("task:\n  kind: mqar\n".into(), "arm.toml:1"),
        ("\u{feff}\u{feff}[task]".into(), "arm.toml"),
        ("\u{1b}[31m".into(), "arm.toml:1"),
        (deep("[", "]", 100_000), "arm.toml"),
        (deep("[", "", 500_000), "arm.toml"),
        (deep("{a=", "}", 100_000), "arm.toml"),
        (deep("[{a=", "}]", 50_000), "arm.toml"),
        (format!("{}x = 1", "a.".repeat(100_000)), "arm.toml"),
        (format!("[{}x]", "a.".repeat(100_000)), "arm.toml"),
        (format!("x = {}", "9".repeat(900_000)), "arm.toml"),
        (format!("{} = 1", "k".repeat(900_000)), "arm.toml"),
        (format!("[task]\nkind = \"{}\"", "k".repeat(900_000)), "task.kind"),
        (format!("x = \"{}", "\\".repeat(900_000)), "arm.toml"),
        ((0..20_000).map(|i| format!("k{i} = 1\n")).collect(), "k0"),
        ((0..20_000).map(|i| format!("[s{i}]\n")).collect(), "s0"),
        ("[a]\n".repeat(100_000), "arm.toml"),
    ];
    for (text, expected) in cases {
        let error = Config::parse(&text, "configs/arm.toml").unwrap_err();
        assert_readable(&error, "configs/arm.toml", Some(expected));
    }
}

#[test]
fn files_that_are_no_configs_give_one_readable_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("h8.toml"), MINIMAL).unwrap();
    fs::write(folder.path().join("mqar.toml"), MINIMAL).unwrap();
    let junk: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("binary.toml", &junk);
    write("nul.toml", b"[task]\nkind = \"mqar\"\n\0");
    write("latin1.toml", b"[task]\nkind = \"mqar\"\n# caf\xe9\n");
    write("utf16.toml", &"[task]".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    write("empty.toml", b"");
    write("large.toml", &vec![b'#'; (1 << 20) + 1]);
    for (name, expected) in [
        ("binary.toml", "isn't UTF-8 text"),
        ("nul.toml", "byte 0x00 at offset 21, line 3"),
        ("latin1.toml", "byte 0xe9 at offset 26, line 3"),
        ("utf16.toml", "isn't UTF-8 text"),
        ("empty.toml", "empty"),
        ("large.toml", "larger than 1048576 bytes"),
        ("h9.toml", "did you mean `"),
        ("h8.tml", "h8.toml"),
        ("mqar", "mqar.toml"),
        ("zebra.toml", "the folder holds"),
        ("no/such/folder.toml", "there is no folder"),
        (".", "this is a folder"),
        ("h8.toml/x", "can't be read"),
    ] {
        let error = Config::load(&folder.path().join(name), &[]).unwrap_err();
        assert_readable(&error, name.trim_start_matches('.'), Some(expected));
    }
}
