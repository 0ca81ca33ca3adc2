//! `text`, against a reader that holds everything in lists.

use headcount_data::files::{Paths, Text, TextSplit, TextUnit};
use headcount_data::metrics::{BITS_PER_BYTE, LOSS, deciding};
use headcount_data::{Answers, Dataset, IGNORE, Seen, Sets, Split, Task};
use proptest::prelude::*;

use super::{all, folder, open, refused};

fn text(unit: TextUnit, split: TextSplit, seq_len: usize) -> Text {
    Text { files: "data.txt".into(), unit, split, seq_len, ..Text::default() }
}

/// What stands in a sample: what is read and the last answer, as names.
fn names(data: &Dataset, sample: &headcount_data::Sample) -> Vec<String> {
    let last = sample.targets[sample.real - 1] as u32;
    let tokens = sample.tokens[..sample.real].iter().copied().chain([last]);
    tokens.map(|token| data.task().token_name(token)).collect()
}

/// Each block's answers follow on its tokens, and padding is not scored.
fn check_shape(sample: &headcount_data::Sample) {
    for t in 0..sample.targets.len() {
        assert_eq!(sample.targets[t] == IGNORE, t >= sample.real);
        assert!(t + 1 >= sample.real || sample.targets[t] == sample.tokens[t + 1] as i32);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    /// The parts of a text in blocks, put together again, are the text.
    #[test]
    fn blocks_are_the_parts_of_the_text(
        letters in prop::collection::vec(prop::sample::select(vec!['a', 'b', 'ß', '字', '🙂', ' ']), 40..900),
        seq_len in 1..9usize,
        characters: bool,
        validation_share in 0.25..0.4f64,
    ) {
        let unit = if characters { TextUnit::Characters } else { TextUnit::Bytes };
        let whole: String = letters.iter().collect();
        let folder = folder(&[("data.txt", whole.as_bytes())]);
        let format = Text { validation_share, test_share: 0.25, ..text(unit, TextSplit::Position, seq_len) };
        let data = open(&format, folder.path()).unwrap();
        let tokens: Vec<Vec<u8>> = match unit {
            TextUnit::Bytes => whole.bytes().map(|byte| vec![byte]).collect(),
            TextUnit::Characters => letters.iter().map(|letter| letter.to_string().into_bytes()).collect(),
        };
        let vocab: std::collections::BTreeSet<&Vec<u8>> = tokens.iter().collect();
        let distinct: Vec<&Vec<u8>> = vocab.into_iter().collect();
        let of_id = |id: u32| if characters { distinct[id as usize].clone() } else { vec![id as u8] };
        prop_assert_eq!(data.task().vocab(), if characters { distinct.len() } else { 256 });
        let count = tokens.len() as f64;
        let test_at = tokens.len() - (count * 0.25).round() as usize;
        let validation_at = tokens.len() - (count * (0.25 + validation_share)).round() as usize;
        for (split, part) in [(Split::Validation, &tokens[validation_at..test_at]), (Split::Test, &tokens[test_at..])] {
            let samples = all(&data, split);
            prop_assert_eq!(samples.len(), (part.len() - 1).div_ceil(seq_len));
            let mut read = vec![];
            let (mut bytes, mut answers) = (0, 0);
            for (index, sample) in samples.iter().enumerate() {
                check_shape(sample);
                prop_assert_eq!(data.unit(split, index as u64), index as u64);
                read.extend(sample.tokens[..sample.real].iter().map(|&id| of_id(id)));
                answers += sample.real;
                bytes += sample.targets[..sample.real].iter().map(|&id| of_id(id as u32).len()).sum::<usize>();
            }
            prop_assert_eq!(&read[..], &part[..part.len() - 1]);
            let mean = data.task().stored().unwrap().bytes_per_answer(split).unwrap();
            prop_assert!((mean - bytes as f64 / answers as f64).abs() < 1e-9);
        }
        let part = &tokens[..validation_at];
        for sample in all(&data, Split::Train) {
            check_shape(&sample);
            prop_assert_eq!(sample.real, seq_len);
            let window: Vec<Vec<u8>> = sample.tokens.iter().copied().chain([sample.targets[seq_len - 1] as u32]).map(of_id).collect();
            prop_assert!(part.windows(seq_len + 1).any(|place| place == window));
        }
    }

    /// Documents keep together, stay in their part when others come before them, and give every token but their first as an answer.
    #[test]
    fn documents_stay_where_they_are(
        documents in prop::collection::vec("[a-zé]{1,20}", 30..60),
        more in prop::collection::vec("[a-zé]{1,20}", 1..10),
        seq_len in 1..8usize,
    ) {
        let format = Text { separator: "\n--\n".into(), test_share: 0.3, validation_share: 0.3, ..text(TextUnit::Characters, TextSplit::Document, seq_len) };
        let read = |documents: Vec<&String>| {
            let joined: Vec<&str> = documents.into_iter().map(String::as_str).collect();
            let folder = folder(&[("data.txt", joined.join("\n--\n").as_bytes())]);
            let data = open(&format, folder.path()).ok()?;
            let mut parts = vec![];
            for split in [Split::Validation, Split::Test] {
                let mut units: Vec<(u64, String, usize)> = vec![];
                for (index, sample) in all(&data, split).iter().enumerate() {
                    check_shape(sample);
                    let unit = data.unit(split, index as u64);
                    let names = names(&data, sample);
                    match units.last_mut() {
                        Some((last, text, blocks)) if *last == unit => {
                            *text += &names[1..].concat();
                            *blocks += 1;
                        }
                        _ => units.push((unit, names.concat(), 1)),
                    }
                }
                for (_, text, blocks) in units {
                    assert_eq!(blocks, (text.chars().count() - 1).div_ceil(seq_len));
                    parts.push((split, text));
                }
            }
            Some(parts)
        };
        let Some(before) = read(documents.iter().collect()) else { return Ok(()) };
        let Some(after) = read(more.iter().chain(&documents).collect()) else { return Ok(()) };
        prop_assert!(before.iter().all(|(_, text)| documents.contains(text)));
        for split in [Split::Validation, Split::Test] {
            let of = |all: &[(Split, String)]| -> Vec<String> {
                all.iter().filter(|(part, _)| *part == split).map(|(_, text)| text.clone()).collect()
            };
            prop_assert!(of(&after).ends_with(&of(&before)), "{before:?} {after:?}");
        }
    }
}

#[test]
fn a_folder_is_read_in_the_order_of_names() {
    let folder =
        folder(&[("texts/b.txt", b"bbbbbbbb"), ("texts/a/z.txt", b"aaaa"), ("texts/.hidden", b"hhhh"), ("v", b"vvvv")]);
    let format = Text {
        files: "texts".into(),
        validation_files: "v".into(),
        test_share: 0.5,
        ..text(TextUnit::Bytes, TextSplit::Position, 3)
    };
    let data = open(&format, folder.path()).unwrap();
    let files: Vec<(&str, u64)> = data.files().iter().map(|file| (file.role, file.bytes)).collect();
    assert_eq!(files, [("files", 4), ("files", 8), ("validation", 4)]);
    assert_eq!(data.files()[0].blake3, blake3::hash(b"aaaa").to_hex().to_string());
    let [validation] = &all(&data, Split::Validation)[..] else { panic!("one block of three and its answers") };
    assert_eq!(names(&data, validation).concat(), "vvvv");
    assert_eq!(names(&data, &all(&data, Split::Test)[0]).concat(), "bbbb");
    assert_eq!(data.task().answers(), Answers::Tokens);
}

#[test]
fn the_fingerprint_is_of_what_files_hold() {
    let sets = Sets { train_examples: None, validation_examples: 10, test_examples: 10 };
    let of = |name: &str, bytes: &[u8]| {
        let folder = folder(&[(name, bytes)]);
        let format = Text { files: name.into(), ..text(TextUnit::Bytes, TextSplit::Position, 8) };
        Dataset::open(&Task::new(headcount_data::OfFiles::new(format)), &sets, folder.path()).unwrap().fingerprint(0)
    };
    let first = b"one two three four ".repeat(30);
    let mut changed = first.clone();
    *changed.last_mut().unwrap() = b'!';
    assert_eq!(of("a.txt", &first), of("moved/b.txt", &first));
    assert_ne!(of("a.txt", &first), of("a.txt", &changed));
}

#[test]
fn sets_take_no_more_than_there_is_and_spread_over_it() {
    let bytes: Vec<u8> = (0..1000u32).map(|place| b'a' + (place / 40) as u8).collect();
    let folder = folder(&[("data.txt", &bytes)]);
    let task = Task::new(headcount_data::OfFiles::new(text(TextUnit::Bytes, TextSplit::Position, 9)));
    let sets = Sets { train_examples: None, validation_examples: 2, test_examples: 100 };
    let data = Dataset::open(&task, &sets, folder.path()).unwrap();
    assert_eq!(*data.sets(), Sets { train_examples: None, validation_examples: 2, test_examples: 11 });
    let first: Vec<u32> = all(&data, Split::Validation).iter().map(|sample| sample.tokens[0]).collect();
    // Blocks 0 and 5 of the 11 in bytes 800 to 899.
    assert_eq!(first, [u32::from(bytes[800]), u32::from(bytes[845])]);
    assert_eq!((data.size(Split::Train), data.size(Split::Test), data.is_fixed()), (None, Some(11), true));
    let samples = data.samples(Split::Train, 0);
    assert_ne!(samples.sample(0), samples.sample(1));
    assert_ne!(samples.sample(0), data.samples(Split::Train, 1).sample(0), "another run reads elsewhere");
    assert_eq!(samples.sample(0), data.samples(Split::Train, 0).sample(0));
}

#[test]
fn bits_by_byte_compare_units() {
    let folder = folder(&[("data.txt", "äöüß".repeat(100).as_bytes())]);
    let of = |unit| open(&text(unit, TextSplit::Position, 8), folder.path()).unwrap();
    let (bytes, characters) = (of(TextUnit::Bytes), of(TextUnit::Characters));
    let value = |data: &Dataset| BITS_PER_BYTE.uninformed(data.task(), data.sets(), Split::Test);
    assert_eq!(value(&bytes), 8.0);
    assert_eq!(value(&characters), 1.0, "a character of two bytes is one of four");
    assert_eq!((deciding(bytes.task()), deciding(characters.task())), (&BITS_PER_BYTE, &BITS_PER_BYTE));
    let baselines = characters.baselines(Split::Test);
    assert_eq!(baselines.len(), 2);
    for baseline in baselines {
        let bits = baseline.scores.get(&BITS_PER_BYTE).unwrap();
        assert!((bits - baseline.scores.number(&LOSS) / 2f64.ln() / 2.0).abs() < 1e-12);
        assert!((bits - 1.0).abs() < 0.01, "all four come equally often");
    }
}

#[test]
fn what_a_text_repeats_is_counted() {
    let unlike: Vec<u8> = (0..2000u32).map(|place| b'a' + (place * place / 7 % 26) as u8).collect();
    let mut bytes = unlike[..800].to_vec();
    bytes.extend_from_slice(&unlike[1000..1100]);
    bytes.extend_from_slice(&unlike[1..51]); // five blocks that the training part has
    bytes.extend((0..50).map(|place| b'A' + place as u8 % 26));
    let folder = folder(&[("data.txt", &bytes)]);
    for unit in [TextUnit::Bytes, TextUnit::Characters] {
        let data = open(&text(unit, TextSplit::Position, 10), folder.path()).unwrap();
        let found = data.overlap(Split::Test, 0, 10);
        // 99 answers in blocks of ten: the last is shorter, and not looked up.
        assert_eq!((found.samples, found.seen), (9, Seen::Exactly(5)));
    }
}

#[test]
fn texts_that_are_none_are_refused_with_their_place() {
    let folder = folder(&[
        ("empty.txt", b""),
        ("short.txt", b"abcdefghij"),
        ("binary.txt", b"a line\nand \x00 more"),
        ("latin.txt", b"a line\ncaf\xe9 and more and more and more of it\n".repeat(9).as_slice()),
        ("good.txt", b"plain text ".repeat(90).as_slice()),
        ("folder/inner/none.txt", b""),
    ]);
    std::fs::create_dir(folder.path().join("nothing")).unwrap();
    let of = |file: &str, unit| Text { files: file.into(), ..text(unit, TextSplit::Position, 16) };
    for (format, message) in [
        (of("empty.txt", TextUnit::Bytes), "empty.txt: is empty"),
        (of("nothing", TextUnit::Bytes), "nothing: is empty"),
        (of("folder", TextUnit::Bytes), "folder/inner/none.txt: is empty"),
        (of("missing.txt", TextUnit::Bytes), "missing.txt: can't be read: No such file or directory (os error 2)"),
        (of("short.txt", TextUnit::Bytes), "the train part has 8 bytes, fewer than the 17 that a sample takes"),
        (of("binary.txt", TextUnit::Bytes), "binary.txt:2: is no text: byte 11 is 0"),
        (
            of("latin.txt", TextUnit::Characters),
            "latin.txt:2: is not UTF-8 at byte 10; `unit = \"bytes\"` reads text in any encoding",
        ),
        (
            Text { test_files: "short.txt".into(), ..of("good.txt", TextUnit::Characters) },
            "the test part has 10 characters, fewer than the 17 that a sample takes",
        ),
        (
            Text { split: TextSplit::Document, separator: "|".into(), ..of("good.txt", TextUnit::Bytes) },
            "no sample is left for the ",
        ),
        (of("/dev/null", TextUnit::Bytes), "/dev/null: can't be read: is no regular file"),
    ] {
        let found = refused(&format, &folder);
        assert!(found == message || message.ends_with(' ') && found.starts_with(message), "{found}");
    }
    assert!(open(&of("latin.txt", TextUnit::Bytes), folder.path()).is_ok());
    let impossible = |format: Text| Task::new(headcount_data::OfFiles::new(format)).check().unwrap_err().to_string();
    assert!(impossible(Text::default()).contains("files names no file"));
    assert!(impossible(Text { test_share: 0.95, ..of("a", TextUnit::Bytes) }).contains("leave nothing to learn from"));
    assert!(impossible(Text { test_share: f64::NAN, ..of("a", TextUnit::Bytes) }).contains("NaN"));
}

/// As a config has it: one path or several, and written back as it was read.
#[test]
fn parameters_are_read_and_written() {
    for (section, paths) in [
        ("files = 'a.txt'\nunit = 'characters'", Paths(vec!["a.txt".into()])),
        ("files = ['a.txt', 'b']", Paths(vec!["a.txt".into(), "b".into()])),
    ] {
        let read = |section: &str| Task::from_kind("text", toml::de::Deserializer::parse(section).unwrap()).unwrap();
        let task = read(section).unwrap();
        let typed = task.downcast::<headcount_data::OfFiles<Text>>().unwrap();
        assert_eq!(typed.format.files, paths);
        let written = toml::to_string(&task).unwrap();
        let (kind, rest) = written.split_once('\n').unwrap();
        assert_eq!(kind, "kind = \"text\"");
        assert_eq!(read(rest), Ok(task.clone()));
        assert_eq!(Task::keys("text").unwrap(), task.parameters().iter().map(|(key, _)| *key).collect::<Vec<_>>());
    }
    assert_eq!(Task::file_kinds(), ["text", "records", "series", "vectors"]);
    assert!(Task::file_kinds().iter().all(|kind| !Task::kinds().contains(kind) && Task::default_of(kind).is_some()));
    let error = Task::from_kind("text", toml::de::Deserializer::parse("\nfiles = 3").unwrap()).unwrap().unwrap_err();
    assert!(error.to_string().contains("a path or a list of paths"), "{error}");
}
