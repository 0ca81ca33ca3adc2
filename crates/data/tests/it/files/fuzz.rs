//! Whatever bytes a file holds, it is refused or gives samples that keep their promises; nothing ends the program.

use headcount_data::files::{Format, Records, Series, Text, TextSplit, TextUnit, Vectors};
use headcount_data::{IGNORE, Split};
use proptest::prelude::*;

use super::vectors::{f4, i8, npz};
use super::{all, folder, open};

fn holds_its_promises<F: Format>(format: &F, name: &str, bytes: &[u8]) -> Result<(), TestCaseError> {
    let folder = folder(&[(name, bytes)]);
    let data = match open(format, folder.path()) {
        Ok(data) => data,
        Err(error) => {
            prop_assert!(error.to_string().len() < 600, "{error}");
            return Ok(());
        }
    };
    let task = data.task();
    prop_assert!(task.seq_len() > 0 && (task.outputs() > 0 || task.numbers().is_some_and(|sizes| sizes.outputs > 0)));
    for split in Split::ALL {
        prop_assert!(data.size(split) != Some(0));
        for sample in all(&data, split) {
            let len = task.seq_len();
            prop_assert_eq!((sample.targets.len(), sample.tokens.len()), (len, if task.vocab() > 0 { len } else { 0 }));
            prop_assert!((1..=len).contains(&sample.real));
            prop_assert!(sample.tokens.iter().all(|&token| (token as usize) < task.vocab()));
            let possible = |&target: &i32| target == IGNORE || (0..task.outputs()).contains(&(target as usize));
            prop_assert!(sample.targets.iter().all(possible));
            let sizes = task.numbers();
            prop_assert_eq!(sample.numbers.is_some(), sizes.is_some());
            if let (Some(numbers), Some(sizes)) = (&sample.numbers, sizes) {
                prop_assert_eq!(
                    (numbers.inputs.len(), numbers.targets.len()),
                    (len * sizes.inputs, len * sizes.outputs)
                );
                prop_assert_eq!(numbers.scored.len(), if sizes.outputs > 0 { len } else { 0 });
                prop_assert!(numbers.inputs.iter().chain(&numbers.targets).all(|number| number.is_finite()));
            }
            prop_assert_eq!(task.explain(&sample).lines().count(), 2 + len);
        }
    }
    prop_assert!(!data.baselines(Split::Test).is_empty() && data.overlap(Split::Test, 0, 100).share() <= 1.0);
    prop_assert_eq!(data.fingerprint(0).len(), 64);
    Ok(())
}

/// A good file with some bytes replaced, one stretch cut out, and another twice.
fn damaged(good: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:0123456789.-eEnN\n\0 ".to_vec())];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), byte), 0..4);
    (changes, any::<prop::sample::Index>(), 0..40usize, any::<bool>()).prop_map(move |(changes, at, length, twice)| {
        let mut bytes = good.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let start = at.index(bytes.len());
        let end = (start + length).min(bytes.len());
        let stretch = bytes[start..end].to_vec();
        if twice {
            bytes.splice(start..start, stretch);
        } else {
            bytes.drain(start..end);
        }
        bytes
    })
}

fn good_records() -> Vec<u8> {
    let line = |n: u32| format!("{{\"tokens\": [{}, 2, {}], \"targets\": [null, {}, 1]}}\n", n % 7, n, n % 3);
    (0..30).map(line).collect::<String>().into_bytes()
}

fn good_labels() -> Vec<u8> {
    let line = |n: u32| format!("{{\"source\": [{}, 2], \"tokens\": [{}]}}\n", n % 7, n);
    (0..30).map(line).collect::<String>().into_bytes()
}

fn good_series() -> Vec<u8> {
    let line = |t: u32| format!("{t},{},{}\n", t % 5, f64::from(t) / 7.0);
    ("a,b,c\n".to_string() + &(0..40).map(line).collect::<String>()).into_bytes()
}

fn good_vectors() -> Vec<u8> {
    let line = |n: u32| format!("{{\"x\": [[{n}, 0.5], [1, 2]], \"y\": [{}, 1]}}\n", n % 4);
    (0..30).map(line).collect::<String>().into_bytes()
}

fn good_archive(is_compressed: bool) -> Vec<u8> {
    let x: Vec<f32> = (0..120).map(|place| place as f32).collect();
    let labels: Vec<i64> = (0..20).map(|n| n % 3).collect();
    npz(&[("x", f4(&[20, 2, 3], &x)), ("y", i8(&[20], &labels))], is_compressed)
}

const SHARES: (f64, f64) = (0.3, 0.3);

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts(bytes in prop::collection::vec(prop_oneof![8 => 1..128u8, 1 => any::<u8>()], 0..200), seq_len in 1..20usize, unit: bool, split: bool) {
        let format = Text {
            files: "data".into(),
            unit: if unit { TextUnit::Bytes } else { TextUnit::Characters },
            split: if split { TextSplit::Position } else { TextSplit::Document },
            separator: "a".into(),
            seq_len,
            ..Text::default()
        };
        holds_its_promises(&format, "data", &bytes)?;
    }

    #[test]
    fn unicode(text in "\\PC{0,120}", seq_len in 1..20usize, separator in "\\PC{1,2}") {
        let format = Text { files: "data".into(), unit: TextUnit::Characters, split: TextSplit::Document, separator, seq_len, ..Text::default() };
        holds_its_promises(&format, "data", text.as_bytes())?;
    }

    #[test]
    fn record_files(bytes in prop_oneof![damaged(good_records()), damaged(good_labels()), prop::collection::vec(any::<u8>(), 0..60)]) {
        let (validation_share, test_share) = SHARES;
        holds_its_promises(&Records { files: "data".into(), validation_share, test_share, ..Records::default() }, "data", &bytes)?;
    }

    #[test]
    fn tables(bytes in prop_oneof![damaged(good_series()), prop::collection::vec(any::<u8>(), 0..60)], window in 1..6usize, horizon in 1..4usize) {
        let (validation_share, test_share) = SHARES;
        let format = Series { files: "data".into(), window, horizon, validation_share, test_share, ..Series::default() };
        holds_its_promises(&format, "data", &bytes)?;
    }

    #[test]
    fn number_files(bytes in prop_oneof![damaged(good_vectors()), prop::collection::vec(any::<u8>(), 0..60)]) {
        let (validation_share, test_share) = SHARES;
        holds_its_promises(&Vectors { files: "data".into(), validation_share, test_share, ..Vectors::default() }, "data", &bytes)?;
    }

    #[test]
    fn archives(bytes in prop_oneof![damaged(good_archive(false)), damaged(good_archive(true))]) {
        let (validation_share, test_share) = SHARES;
        let format = Vectors { files: "data.npz".into(), validation_share, test_share, ..Vectors::default() };
        holds_its_promises(&format, "data.npz", &bytes)?;
    }
}

/// The files that are damaged above are good.
#[test]
fn good_files_open() {
    let (validation_share, test_share) = SHARES;
    let records = Records { files: "data".into(), validation_share, test_share, ..Records::default() };
    let vectors = |name: &str| Vectors { files: name.into(), validation_share, test_share, ..Vectors::default() };
    for bytes in [good_records(), good_labels()] {
        assert!(open(&records, folder(&[("data", &bytes)]).path()).is_ok());
    }
    assert!(open(&vectors("data"), folder(&[("data", &good_vectors())]).path()).is_ok());
    for is_compressed in [false, true] {
        assert!(open(&vectors("data.npz"), folder(&[("data.npz", &good_archive(is_compressed))]).path()).is_ok());
    }
}
