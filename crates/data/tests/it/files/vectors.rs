//! `vectors`, against what was written.

use std::io::{Cursor, Write as _};

use headcount_data::files::{VectorAnswers, Vectors};
use headcount_data::{IGNORE, NumberSizes, Sample, Split};
use proptest::prelude::*;

use super::{all, folder, open, refused};

/// As `numpy.save` writes it.
pub fn npy(descr: &str, shape: &[usize], numbers: &[u8]) -> Vec<u8> {
    let sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sides}), }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), numbers].concat()
}

pub fn f4(shape: &[usize], numbers: &[f32]) -> Vec<u8> {
    npy("<f4", shape, &numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
}

pub fn i8(shape: &[usize], numbers: &[i64]) -> Vec<u8> {
    npy("<i8", shape, &numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
}

/// As `numpy.savez` and `numpy.savez_compressed` write it.
pub fn npz(arrays: &[(&str, Vec<u8>)], is_compressed: bool) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(vec![]));
    let method = if is_compressed { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
    for (name, bytes) in arrays {
        writer
            .start_file(format!("{name}.npy"), zip::write::FileOptions::default().compression_method(method))
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn vectors(file: &str) -> Vectors {
    Vectors { files: file.into(), validation_share: 0.3, test_share: 0.3, ..Vectors::default() }
}

fn everything(format: &Vectors, files: &[(&str, &[u8])]) -> (headcount_data::Dataset, Vec<Sample>) {
    let data = open(format, folder(files).path()).unwrap();
    let mut samples: Vec<Sample> = Split::ALL.into_iter().flat_map(|split| all(&data, split)).collect();
    // In the order of the files: each begins with its number.
    samples.sort_by(|a, b| a.numbers.as_ref().unwrap().inputs[0].total_cmp(&b.numbers.as_ref().unwrap().inputs[0]));
    (data, samples)
}

/// x `[60, 2, 3]`; sample n is 6n, 6n + 1, ...
fn x() -> Vec<f32> {
    (0..360).map(|number| number as f32).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same numbers from `.npz`, from two `.npy` and from JSONL are the same samples.
    #[test]
    fn formats_agree(
        length in 1..4usize,
        width in 1..4usize,
        outputs in 1..3usize,
        by_position: bool,
        is_compressed: bool,
        numbers in prop::collection::vec(-9.0..9.0f32, 40 * 12),
    ) {
        let x: Vec<f32> = (0..40 * length * width).map(|place| place as f32 + 0.5).collect();
        let rows = if by_position { length } else { 1 };
        let y = &numbers[..40 * rows * outputs];
        let shape = if by_position { vec![40, length, outputs] } else { vec![40, outputs] };
        let (x_file, y_file) = (f4(&[40, length, width], &x), f4(&shape, y));
        let archive = npz(&[("x", x_file.clone()), ("y", y_file.clone())], is_compressed);
        let line = |n: usize| {
            let table = |numbers: &[f32], width: usize| numbers.chunks(width).map(<[f32]>::to_vec).collect::<Vec<_>>();
            let x = table(&x[n * length * width..(n + 1) * length * width], width);
            let y = table(&y[n * rows * outputs..(n + 1) * rows * outputs], outputs);
            let y = if by_position { serde_json::json!(y) } else { serde_json::json!(y[0]) };
            serde_json::json!({ "x": x, "y": y }).to_string() + "\n"
        };
        let json: String = (0..40).map(line).collect();
        let (data, samples) = everything(&vectors("data.npz"), &[("data.npz", &archive)]);
        let two = Vectors { answer_files: "y.npy".into(), ..vectors("x.npy") };
        prop_assert_eq!(&everything(&two, &[("x.npy", &x_file), ("y.npy", &y_file)]).1, &samples);
        let numbers = Vectors { answers: VectorAnswers::Numbers, ..vectors("data.jsonl") };
        prop_assert_eq!(&everything(&numbers, &[("data.jsonl", json.as_bytes())]).1, &samples);
        prop_assert_eq!(data.task().numbers(), Some(NumberSizes { inputs: width, outputs }));
        prop_assert_eq!((samples.len(), data.task().seq_len(), data.task().one_answer()), (40, length, !by_position));
        for (n, sample) in samples.iter().enumerate() {
            let found = sample.numbers.as_ref().unwrap();
            prop_assert_eq!(&found.inputs[..], &x[n * length * width..(n + 1) * length * width]);
            let answers = &y[n * rows * outputs..(n + 1) * rows * outputs];
            prop_assert!(found.targets.ends_with(answers));
            prop_assert_eq!(found.scored.iter().filter(|&&scored| scored).count(), rows);
            prop_assert!(found.scored[length - 1]);
        }
    }
}

#[test]
fn whole_numbers_are_classes() {
    let labels: Vec<i64> = (0..60).map(|n| n % 4).collect();
    let archive = npz(&[("x", f4(&[60, 2, 3], &x())), ("y", i8(&[60], &labels))], false);
    let (data, samples) = everything(&vectors("data.npz"), &[("data.npz", &archive)]);
    assert_eq!((data.task().outputs(), data.task().one_answer()), (4, true));
    assert_eq!(data.task().numbers(), Some(NumberSizes { inputs: 3, outputs: 0 }));
    assert!(samples.iter().enumerate().all(|(n, sample)| sample.targets == [IGNORE, n as i32 % 4]));
    assert_eq!(data.baselines(Split::Test).len(), 2);

    // One a position, none where it is negative.
    let classes: Vec<i64> = (0..120).map(|place| place % 3 - 1).collect();
    let archive = npz(&[("x", f4(&[60, 2, 3], &x())), ("y", i8(&[60, 2], &classes))], true);
    let (data, samples) = everything(&vectors("data.npz"), &[("data.npz", &archive)]);
    assert_eq!((data.task().outputs(), data.task().one_answer()), (2, false));
    let target = |place: i32| if place % 3 == 0 { IGNORE } else { place % 3 - 1 };
    assert!(
        samples
            .iter()
            .enumerate()
            .all(|(n, sample)| sample.targets == [2 * n, 2 * n + 1].map(|place| target(place as i32)))
    );

    // Unless they are asked to be numbers.
    let numbers = Vectors { answers: VectorAnswers::Numbers, ..vectors("data.npz") };
    let (data, _) = everything(&numbers, &[("data.npz", &archive)]);
    assert_eq!(data.task().numbers(), Some(NumberSizes { inputs: 3, outputs: 2 }));
}

#[test]
fn lengths_may_vary() {
    let line = |n: usize| {
        let x: Vec<[usize; 1]> = (0..1 + n % 3).map(|t| [100 * n + t]).collect();
        let y: Vec<[f64; 1]> = x.iter().map(|row| [row[0] as f64 / 8.0]).collect();
        serde_json::json!({ "x": x, "y": y }).to_string() + "\n"
    };
    let json: String = (0..40).map(line).collect();
    let (data, samples) = everything(&vectors("data.jsonl"), &[("data.jsonl", json.as_bytes())]);
    assert_eq!((data.task().seq_len(), data.task().one_answer()), (3, false));
    for (n, sample) in samples.iter().enumerate() {
        let numbers = sample.numbers.as_ref().unwrap();
        assert_eq!(sample.real, 1 + n % 3);
        for t in 0..3 {
            let is_real = t < sample.real;
            let number = if is_real { (100 * n + t) as f32 } else { 0.0 };
            assert_eq!((numbers.inputs[t], numbers.targets[t], numbers.scored[t]), (number, number / 8.0, is_real));
        }
    }
    insta::assert_snapshot!(data.task().explain(&samples[1]), @r"
    3 positions, 2 real; * = scored
        t  read
        0  100.000  * 12.500
        1  101.000  * 12.625
        2  padding
    ");

    // The list of whole numbers is as long as the sample by chance.
    let line = |n: usize| serde_json::json!({ "x": vec![[n]; 1 + n % 3], "y": [n, 1] }).to_string() + "\n";
    let json: String = (0..40).map(line).collect();
    let (data, samples) = everything(&vectors("data.jsonl"), &[("data.jsonl", json.as_bytes())]);
    assert_eq!((data.task().numbers(), data.task().one_answer()), (Some(NumberSizes { inputs: 1, outputs: 2 }), true));
    assert!(samples.iter().all(|sample| sample.numbers.as_ref().unwrap().scored[sample.real - 1]));
}

#[test]
fn arrays_that_are_wrong_are_refused_with_their_place() {
    let x_file = || f4(&[60, 2, 3], &x());
    let mut odd = x();
    odd[7] = f32::NAN;
    let archive = |arrays: &[(&str, Vec<u8>)]| npz(arrays, false);
    let y = || f4(&[60], &[0.5; 60]);
    for (bytes, message) in [
        (archive(&[("x", x_file())]), "data.npz: `y` is missing; there are `x.npy`"),
        (archive(&[("x", f4(&[60, 6], &x())), ("y", y())]), "data.npz: `x` is of shape [60, 6], and must be [N, L, F]"),
        (
            archive(&[("x", x_file()), ("y", f4(&[59], &[0.5; 59]))]),
            "data.npz: `y` is of shape [59], and must be [60], [60, O] or [60, 2, O]",
        ),
        (
            archive(&[("x", f4(&[60, 2, 3], &odd)), ("y", y())]),
            "data.npz: `x[1]` is NaN at number 1, and must be a finite number",
        ),
        (archive(&[("x", f4(&[60, 0, 3], &[])), ("y", y())]), "data.npz: `x[0]` is empty"),
        (archive(&[("x", f4(&[60, 3, 0], &[])), ("y", y())]), "data.npz: `x[0]` is empty"),
        (archive(&[("x", f4(&[0, 2, 3], &[])), ("y", f4(&[0], &[]))]), "no sample is left for the train part"),
        (archive(&[("x", b"nothing".to_vec()), ("y", y())]), "data.npz: `x` ends too early"),
        (b"PK nothing".to_vec(), "data.npz: is no zip archive: "),
        (vec![], "data.npz: is empty"),
    ] {
        let found = refused(&vectors("data.npz"), &folder(&[("data.npz", &bytes)]));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let classes = Vectors { answers: VectorAnswers::Classes, ..vectors("data.npz") };
    let half = folder(&[("data.npz", &archive(&[("x", x_file()), ("y", y())]))]);
    assert_eq!(
        refused(&classes, &half),
        "data.npz: `y[0]` is 0.5, and must be a class, 0 to 1048575; `answers = \"numbers\"` reads numbers"
    );
    let two = folder(&[("data.npz", &archive(&[("x", x_file()), ("y", f4(&[60, 2], &[1.0; 120]))]))]);
    assert_eq!(refused(&classes, &two), "`y` is Row(2) a sample, and must be one class for all or one a position");

    let alone = folder(&[("x.npy", &x_file()), ("y.npy", &y()), ("cut.npy", &x_file()[..200])]);
    assert!(refused(&vectors("x.npy"), &alone).starts_with("x.npy: is .npy with x alone: name the file with y"));
    let cut = Vectors { answer_files: "y.npy".into(), ..vectors("cut.npy") };
    assert!(refused(&cut, &alone).starts_with("cut.npy: has "), "{}", refused(&cut, &alone));

    let good = "{\"x\": [[1.5, 2], [3, 4]], \"y\": 0.5}\n";
    for (line, message) in [
        ("{\"x\": [[1, 2]]}", "data.jsonl:2: `y` is missing; there are `x`"),
        (
            "{\"x\": [1, 2], \"y\": 1}",
            "data.jsonl:2: `x` is [1,2], and must be a list of L lists of F numbers, all as long",
        ),
        ("{\"x\": [[1, 2], [1]], \"y\": 1}", "data.jsonl:2: `x` is [[1,2],[1]], and must be a list of L lists"),
        ("{\"x\": [[1, null]], \"y\": 1}", "data.jsonl:2: `x[0][1]` is null, and must be a finite number"),
        ("{\"x\": [[1, 1e39]], \"y\": 1}", "data.jsonl:2: `x[0][1]` is 1e+39, and must be a finite number"),
        ("{\"x\": [[1, 2]], \"y\": [[[1]]]}", "data.jsonl:2: `y[0][0]` is [1], and must be a finite number"),
        ("{\"x\": [[1]], \"y\": 1}", "data.jsonl:2: `x` is 1 numbers a position and One to say, and must be 2 numbers"),
        (
            "{\"x\": [[1, 2]], \"y\": [0.5, 1]}",
            "data.jsonl:2: `x` is 2 numbers a position and Row(2) to say, and must be",
        ),
        ("nothing", "data.jsonl:2: is no JSON object: "),
    ] {
        let found = refused(&vectors("data.jsonl"), &folder(&[("data.jsonl", format!("{good}{line}\n").as_bytes())]));
        assert!(found.starts_with(message), "{found}\n{message}");
    }
}
