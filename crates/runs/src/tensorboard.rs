//! Event files of TensorBoard: the curves of a run, its settings with the final scores, and the maps of its heads.
//!
//! The format is TFRecord around Protocol Buffers (`tensorflow/core/util/event.proto`, `framework/summary.proto` and
//! `tensorboard/plugins/hparams/plugin_data.proto`), as far as it is needed here. Every metric line is one event, in the order of
//! the lines, so that a file tells by itself what it holds already, and a run that was gone on with has no step twice.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::{Compression, write::ZlibEncoder};

use crate::{
    directory::RunDirectory,
    document::leaves,
    error::RunError,
    files,
    heads::{AttentionSite, HeadAnalysis, ShownMaps},
    layout, limits,
    metrics::{MetricLine, read_metrics},
    open::OpenRun,
};

/// The folder of a run that holds its event file while it trains.
pub const FOLDER: &str = layout::TENSORBOARD;
const FILE: &str = layout::EVENTS;
/// Samples whose maps are drawn.
const SAMPLES: usize = 1;

/// The event file of a run that trains, which gets every metric line as it comes.
#[derive(Debug)]
pub struct EventLog {
    path: PathBuf,
    file: File,
    /// Metric lines that the file holds.
    held: usize,
    /// Those that came by, of which the first ones are held already.
    seen: usize,
}

impl EventLog {
    /// Opens the event file in a run's directory, or begins it, and brings it up to the metrics that there are.
    ///
    /// # Errors
    /// Where a file can't be read or written.
    pub fn open(directory: &RunDirectory) -> Result<Self, RunError> {
        let folder = directory.path().join(FOLDER);
        files::refuse_link(&folder)?;
        fs::create_dir_all(&folder).map_err(RunError::io("create", &folder))?;
        let path = folder.join(FILE);
        files::refuse_link(&path)?;
        let present = match files::read_at_most(&path, limits::EVENTS) {
            // An export of the run as it was then begins otherwise, and holds more than its lines.
            Ok(bytes) if bytes.get(12 + 9..).is_some_and(|behind| behind.starts_with(&by(LOG))) => whole(&bytes),
            Ok(_) => Present::default(),
            Err(error) if error.is_absent() => Present::default(),
            Err(error) => return Err(error),
        };
        let io = || RunError::io("write", &path);
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).map_err(io())?;
        // A record that a kill has cut off goes.
        file.set_len(present.bytes).map_err(io())?;
        if present.bytes == 0 {
            file.write_all(&record(&header(now(), LOG))).map_err(io())?;
        }
        let mut log = Self { path, file, held: present.lines, seen: 0 };
        let metrics = match read_metrics(&directory.metrics_path()) {
            Err(error) if error.is_absent() => vec![],
            metrics => metrics?,
        };
        metrics.iter().try_for_each(|line| log.append(line))?;
        Ok(log)
    }

    /// A line of the metrics, unless it is held already: a run that was gone on with writes the same lines again.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn append(&mut self, line: &MetricLine) -> Result<(), RunError> {
        self.seen += 1;
        if self.seen <= self.held {
            return Ok(());
        }
        self.file.write_all(&record(&scalars(line, now()))).map_err(RunError::io("write", &self.path))
    }
}

/// Everything of a run as an event file in `folder`, which is made; the path of the file. `heads` is the analysis of its heads, if
/// there is one.
///
/// # Errors
/// Where a file can't be read or written.
pub fn export(run: &OpenRun, heads: Option<&HeadAnalysis>, folder: &Path) -> Result<PathBuf, RunError> {
    files::check_folder(folder)?;
    fs::create_dir_all(folder).map_err(RunError::io("create", folder))?;
    let (metrics, timings) = (run.metrics()?, run.timings().unwrap_or_default());
    // Seconds since the run began, to which the time of its last line is added: no file tells when it began.
    let modified = fs::metadata(run.directory().metrics_path()).and_then(|found| found.modified()).ok();
    let ended = modified
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0.0, |time| time.as_secs_f64());
    let began = ended - timings.last().map_or(0.0, |line| line.seconds);
    let at = |step: u64| {
        let after = timings.iter().position(|line| line.step >= step);
        let Some(after) = after else { return ended };
        let (step_before, second_before) =
            after.checked_sub(1).map_or((0, 0.0), |before| (timings[before].step, timings[before].seconds));
        let line = &timings[after];
        let share = (step.saturating_sub(step_before)) as f64 / (line.step - step_before).max(1) as f64;
        began + second_before + (line.seconds - second_before) * share
    };

    let mut bytes = record(&header(began, EXPORT));
    bytes.extend(record(&settings(run, began)));
    for line in &metrics {
        bytes.extend(record(&scalars(line, at(line.step))));
    }
    if let Some(summary) = run.summary() {
        let tested = summary
            .test
            .iter()
            .map(|scores| ("test", scores))
            .chain(summary.best_test.iter().map(|scores| ("test at best", scores)));
        let values = tested.flat_map(|(name, scores)| {
            scores.iter().map(move |(kind, value)| scalar(&format!("{name}/{}", kind.key), value))
        });
        bytes.extend(record(&event(at(summary.steps), summary.steps, &values.collect::<Vec<_>>())));
    }
    for step in heads.iter().flat_map(|heads| &heads.steps) {
        let mut images = vec![];
        for attention in &step.attentions {
            let site = match attention.site {
                AttentionSite::Decoder => "",
                AttentionSite::Encoder => "encoder ",
                AttentionSite::Cross => "cross ",
            };
            for (head, maps) in
                attention.maps.iter().flat_map(|maps| (0..maps.heads.len()).map(move |head| (head, maps)))
            {
                if let Some(pixels) = pixels(maps, head) {
                    let tag = format!("maps/{site}layer {} head {head}", attention.layer);
                    images.push(image(&tag, maps.keys, maps.queries * maps.samples.min(SAMPLES), &pixels));
                }
            }
        }
        if !images.is_empty() {
            bytes.extend(record(&event(at(step.step), step.step, &images)));
        }
    }
    bytes.extend(record(&ending(ended)));
    let path = folder.join(FILE);
    files::write_output(&path, &bytes)?;
    Ok(path)
}

fn now() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

// ---- Events ------------------------------------------------------------------------------------------------------------

/// Who wrote a file: a run as it trained, line by line.
const LOG: &str = "headcount, as it trained";
/// Or the export of what there was.
const EXPORT: &str = "headcount export";

/// The first event of a file: its version, and who wrote it.
fn header(time: f64, writer: &str) -> Vec<u8> {
    [double(1, time), by(writer)].concat()
}

/// The first event behind its time, which takes nine bytes.
fn by(writer: &str) -> Vec<u8> {
    [text(3, "brain.Event:2"), message(10, &text(1, writer))].concat()
}

/// An event with values of a summary.
fn event(time: f64, step: u64, values: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = double(1, time);
    bytes.extend(number(2, step));
    let summary: Vec<u8> = values.iter().flat_map(|value| message(1, value)).collect();
    bytes.extend(message(5, &summary));
    bytes
}

fn scalars(line: &MetricLine, time: f64) -> Vec<u8> {
    let split = line.split.name();
    let scores = line.scores.iter().map(|(kind, value)| scalar(&format!("{split}/{}", kind.key), value));
    let own = [("learning rate", line.lr), ("gradient norm", line.grad_norm)];
    let own = own.into_iter().filter_map(|(name, value)| Some(scalar(&format!("{split}/{name}"), value?)));
    event(time, line.step, &scores.chain(own).collect::<Vec<_>>())
}

fn scalar(tag: &str, value: f64) -> Vec<u8> {
    let mut bytes = text(1, tag);
    bytes.extend(float(2, value as f32));
    bytes
}

fn image(tag: &str, width: usize, height: usize, pixels: &[u8]) -> Vec<u8> {
    let png = png(width, height, pixels);
    let mut image = number(1, height as u64);
    image.extend(number(2, width as u64));
    image.extend(number(3, 1)); // gray
    image.extend(message(4, &png));
    let mut bytes = text(1, tag);
    bytes.extend(message(4, &image));
    bytes
}

/// The resolved config, as settings that runs can be sorted and filtered by.
fn settings(run: &OpenRun, time: f64) -> Vec<u8> {
    let mut start = vec![];
    for (key, value) in leaves(&run.config().to_toml()) {
        let value = match (value.parse::<f64>(), value.as_str()) {
            (Ok(value), _) => double(2, value),
            (Err(_), "true" | "false") => number(4, u64::from(value == "true")),
            (Err(_), value) => text(3, value.trim_matches('"')),
        };
        let mut entry = text(1, &key);
        entry.extend(message(2, &value));
        start.extend(message(1, &entry));
    }
    start.extend(text(4, &run.config().name));
    start.extend(double(5, time));
    event(time, 0, &[hparams("_hparams_/session_start_info", 3, &start)])
}

/// The end of the run.
fn ending(time: f64) -> Vec<u8> {
    const SUCCESS: u64 = 1;
    let mut end = number(1, SUCCESS);
    end.extend(double(2, time));
    event(time, 0, &[hparams("_hparams_/session_end_info", 4, &end)])
}

/// A value of the plugin of settings; `field` is that of its kind.
fn hparams(tag: &str, field: u32, content: &[u8]) -> Vec<u8> {
    let content = message(field, content);
    let mut plugin = text(1, "hparams");
    plugin.extend(message(2, &content));
    let mut bytes = text(1, tag);
    bytes.extend(message(9, &message(1, &plugin)));
    bytes
}

// ---- Maps --------------------------------------------------------------------------------------------------------------

/// A head's map as gray pixels, white where the weight is 1, row by row.
fn pixels(maps: &ShownMaps, head: usize) -> Option<Vec<u8>> {
    let weights = BASE64_STANDARD.decode(maps.heads.get(head)?).ok()?;
    let mut weights = weights.into_iter();
    let mut pixels = vec![];
    for _ in 0..maps.samples.min(SAMPLES) {
        for query in 0..maps.queries {
            let readable = if maps.causal { (query + 1).min(maps.keys) } else { maps.keys };
            for key in 0..maps.keys {
                pixels.push(if key < readable { weights.next()? } else { 0 });
            }
        }
    }
    Some(pixels)
}

/// A gray PNG of 8 bits (RFC 2083).
fn png(width: usize, height: usize, pixels: &[u8]) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(vec![], Compression::default());
    for row in pixels.chunks(width.max(1)) {
        // Into memory, which takes everything.
        drop(packed.write_all(&[0]).and_then(|()| packed.write_all(row)));
    }
    let packed = packed.finish().unwrap_or_default();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut head = [(width as u32).to_be_bytes(), (height as u32).to_be_bytes()].concat();
    head.extend([8, 0, 0, 0, 0]);
    for (name, content) in [(b"IHDR", &head[..]), (b"IDAT", &packed), (b"IEND", &[])] {
        bytes.extend((content.len() as u32).to_be_bytes());
        let start = bytes.len();
        bytes.extend(name);
        bytes.extend(content);
        bytes.extend(crc32fast::hash(&bytes[start..]).to_be_bytes());
    }
    bytes
}

// ---- Protocol Buffers --------------------------------------------------------------------------------------------------

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn key(field: u32, kind: u32) -> Vec<u8> {
    varint(u64::from(field << 3 | kind))
}

fn number(field: u32, value: u64) -> Vec<u8> {
    [key(field, 0), varint(value)].concat()
}

fn double(field: u32, value: f64) -> Vec<u8> {
    [key(field, 1), value.to_le_bytes().to_vec()].concat()
}

fn float(field: u32, value: f32) -> Vec<u8> {
    [key(field, 5), value.to_le_bytes().to_vec()].concat()
}

fn message(field: u32, content: &[u8]) -> Vec<u8> {
    [key(field, 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn text(field: u32, content: &str) -> Vec<u8> {
    message(field, content.as_bytes())
}

// ---- Records -----------------------------------------------------------------------------------------------------------

/// Length, its checksum, content, its checksum.
fn record(content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64).to_le_bytes();
    [&length[..], &masked(&length).to_le_bytes(), content, &masked(content).to_le_bytes()].concat()
}

/// The checksum of a TFRecord: CRC-32C, rotated, so that a checksum of checksums is none.
fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (RFC 3720, appendix B.4).
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut crc = index as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
                bit += 1;
            }
            table[index] = crc;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, byte| TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ crc >> 8)
}

/// What a file holds that is whole.
#[derive(Debug, Default, PartialEq)]
struct Present {
    /// Up to the last whole record.
    bytes: u64,
    /// Records but the first.
    lines: usize,
}

fn whole(bytes: &[u8]) -> Present {
    let mut present = Present::default();
    let mut rest = bytes;
    let mut records = 0usize;
    while let Some((head, behind)) = rest.split_at_checked(12) {
        let length = u64::from_le_bytes(head[..8].try_into().unwrap_or_default());
        let Some(all) = usize::try_from(length).ok().and_then(|length| length.checked_add(4)) else { break };
        let Some((content, behind)) = behind.split_at_checked(all) else { break };
        let (content, checksum) = content.split_at(all - 4);
        if masked(&head[..8]).to_le_bytes() != head[8..] || masked(content).to_le_bytes() != *checksum {
            break;
        }
        present.bytes += 16 + length;
        records += 1;
        rest = behind;
    }
    present.lines = records.saturating_sub(1);
    present
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
    #[test]
    fn checksums_are_those_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    /// `tf.io.TFRecordWriter` writes these bytes for the record b"x".
    #[test]
    fn numbers_are_those_of_protocol_buffers() {
        assert_eq!(varint(300), [0xac, 0x02]);
        assert_eq!(number(2, 150), [0x10, 0x96, 0x01]);
        assert_eq!(text(2, "testing"), b"\x12\x07testing");
    }

    #[test]
    fn a_map_is_a_picture() {
        let maps = ShownMaps {
            causal: true,
            samples: 1,
            queries: 2,
            keys: 2,
            heads: vec![BASE64_STANDARD.encode([255, 10, 245])],
        };
        assert_eq!(pixels(&maps, 0), Some(vec![255, 0, 10, 245]));
        assert_eq!(pixels(&maps, 1), None);
        assert_eq!(pixels(&ShownMaps { queries: 3, keys: 3, ..maps.clone() }, 0), None, "too short");
        let png = png(2, 2, &[255, 0, 10, 245]);
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&png[png.len() - 12..], b"\0\0\0\0IEND\xae\x42\x60\x82");
    }

    proptest! {
        /// Whatever is cut off or damaged, what is before it counts.
        #[test]
        fn what_is_whole_is_found(contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6), cut in 0usize..40) {
            let records: Vec<Vec<u8>> = contents.iter().map(|content| record(content)).collect();
            let mut bytes: Vec<u8> = records.concat();
            let all = bytes.len();
            prop_assert_eq!(whole(&bytes).bytes as usize, all);
            prop_assert_eq!(whole(&bytes).lines, contents.len().saturating_sub(1));
            bytes.truncate(all.saturating_sub(cut));
            let kept = whole(&bytes).bytes as usize;
            let ends: Vec<usize> = (0..=records.len()).map(|count| records[..count].iter().map(Vec::len).sum()).collect();
            prop_assert!(kept <= bytes.len() && ends.contains(&kept), "{} of {:?}", kept, ends);
        }
    }
}
