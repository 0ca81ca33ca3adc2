//! `manifest.json`: what a run was, so that two runs can be shown to match.

use std::{collections::BTreeMap, fmt, path::Path};

use architecture::Parts;
use data::{ReadFile, Task};
use serde::{Deserialize, Serialize};

use crate::{config::Config, error::RunError, limits, origin::Origin, sealed};

/// The program that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Version of the crate, e.g. `0.1.0`.
    pub version: String,
    /// Commit it was built from, 40 hex digits, where that is known.
    pub commit: Option<String>,
    /// Whether the sources differed from that commit, where that is known.
    pub dirty: Option<bool>,
    /// A hash of its sources, compiler, flags and features, where that is known: two builds of one changed commit differ in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
}

/// A later call that went on with a run, other than the one before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// Optimiser steps that were done before it.
    pub after_step: u64,
    /// The program that went on.
    pub program: Program,
    /// What computed from there on.
    pub device: String,
    /// Its vector instructions: [`Manifest::simd`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simd: Option<String>,
}

impl fmt::Display for Program {
    /// "0.1.0, commit 1a2b3c4d5e, with changes, build 0123456789abcdef".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.commit {
            Some(commit) => write!(
                f,
                "{}, commit {}",
                self.version,
                commit.chars().filter(char::is_ascii_alphanumeric).take(10).collect::<String>()
            )?,
            None => write!(f, "{}, commit unknown", self.version)?,
        }
        if self.dirty == Some(true) {
            f.write_str(", with changes")?;
        }
        match &self.build {
            Some(build) => {
                write!(f, ", build {}", build.chars().filter(char::is_ascii_alphanumeric).take(16).collect::<String>())
            }
            None => Ok(()),
        }
    }
}

/// BLAKE3 hashes, 64 hex digits each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprints {
    /// Task, seed, generator version and samples: [`data::fingerprint()`].
    pub data: String,
    /// All initial weights together: [`WeightsFingerprint::all`].
    pub weights: String,
    /// Each initial tensor by parameter path: [`WeightsFingerprint::tensors`].
    pub tensors: BTreeMap<String, TensorFingerprint>,
}

/// One tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorFingerprint {
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// BLAKE3 of its path, shape and values, 64 hex digits.
    pub blake3: String,
}

/// A file that samples came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// Its name, without its folders.
    pub name: String,
    /// What it is for: `files`, `validation`, `test`, `vocab`.
    pub role: String,
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 of what it holds, 64 hex digits.
    pub blake3: String,
}

impl DataFile {
    /// Those of a task that is open, in the order in which they were read; none where samples are generated.
    pub fn of(task: &Task) -> Vec<Self> {
        let name = |file: &ReadFile| file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let one = |file: &ReadFile| Self {
            name: name(file),
            role: file.role.into(),
            bytes: file.bytes,
            blake3: file.blake3.clone(),
        };
        task.stored().map_or(vec![], |stored| stored.files().iter().map(one).collect())
    }
}

impl fmt::Display for DataFile {
    /// "data.txt, 1115394 bytes, BLAKE3 0123456789abcdef".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash: String = self.blake3.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
        write!(f, "{}, {} bytes, BLAKE3 {hash}", self.name, self.bytes)
    }
}

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The resolved config, as in `config.toml`: what the run's other files are held against.
    pub config: String,
    /// The program that ran.
    pub program: Program,
    /// The backend's name, as in the config.
    pub backend: String,
    /// What computed, in the backend's words.
    pub device: String,
    /// Vector instructions of the CPU's kernels (`avx512`, `avx2`, `portable`), on which last bits depend; `None` where
    /// something else computes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simd: Option<String>,
    /// CPU threads.
    pub threads: usize,
    /// Trained numbers, by part of the model.
    pub parameters: Parts,
    /// Floating-point operations of one optimiser step, by part: 2mnk for every product, full L x L attention, logits
    /// where they are computed, backward counted as twice the forward.
    pub flops_per_step: Parts,
    /// Tokens of one full optimiser step, padding included.
    pub tokens_per_step: u64,
    /// Proof of what the run started from.
    pub fingerprints: Fingerprints,
    /// The files that its samples come from; none where they are generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DataFile>,
    /// Where another program or another device went on with it; of a run of one kind, nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumed>,
}

impl Manifest {
    /// The programs that ran, in their order.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        std::iter::once(&self.program).chain(self.resumed.iter().map(|resumed| &resumed.program))
    }

    /// The vector instructions that were used, in their order.
    pub fn levels(&self) -> impl Iterator<Item = &String> {
        self.simd.iter().chain(self.resumed.iter().filter_map(|resumed| resumed.simd.as_ref()))
    }

    /// What the call that goes on after `step`, and of which `now` is the manifest, has otherwise than the last one, a
    /// sentence each; where there is any, it is kept in [`Manifest::resumed`].
    pub fn go_on(&mut self, after_step: u64, now: &Self) -> Vec<String> {
        let last = self.resumed.last();
        let (program, device, simd) =
            last.map_or((&self.program, &self.device, &self.simd), |last| (&last.program, &last.device, &last.simd));
        let mut changes = vec![];
        if *program != now.program {
            changes.push(format!("this is program {}, and it was begun by {program}", now.program));
        }
        if *device != now.device {
            changes.push(format!("this is {}, and it was begun on {device}", now.device));
        }
        if *simd != now.simd {
            let named = |level: &Option<String>| level.clone().unwrap_or_else(|| "none".into());
            changes.push(format!(
                "these are {} vector instructions, and it was begun with {}",
                named(&now.simd),
                named(simd)
            ));
        }
        if !changes.is_empty() {
            let (program, device, simd) = (now.program.clone(), now.device.clone(), now.simd.clone());
            self.resumed.push(Resumed { after_step, program, device, simd });
        }
        changes
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// Where the disk is full or gone.
    pub fn write(&self, path: &Path) -> Result<(), RunError> {
        sealed::write(path, self)
    }

    /// Refuses files that no longer hold what they held when the run was begun; `config` was read now.
    ///
    /// # Errors
    /// [`RunError::FileChanged`], of the first of them.
    pub fn check_files(&self, config: &Config, run: &Path) -> Result<(), RunError> {
        let (then, now) = (&self.files, DataFile::of(&config.task.task));
        let of = |files: &[DataFile], at: usize| files.get(at).map_or("nothing".to_string(), DataFile::to_string);
        let changed = (0..then.len().max(now.len())).find(|&at| then.get(at) != now.get(at));
        match changed {
            None => Ok(()),
            Some(at) => Err(RunError::FileChanged { run: run.into(), then: of(then, at), now: of(&now, at) }),
        }
    }

    /// The run that it is of.
    pub fn origin(&self) -> Origin {
        let Fingerprints { data, weights, .. } = self.fingerprints.clone();
        Origin { config: self.config.clone(), data, weights }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Where there is none, or it is damaged, naming file and line.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        sealed::read(path, limits::MANIFEST)
    }
}

/// Hashes of a set of tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsFingerprint {
    /// BLAKE3 over all tensors, 64 hex digits.
    pub all: String,
    /// Each tensor by its path.
    pub tensors: BTreeMap<String, TensorFingerprint>,
}

/// BLAKE3 over tensors sorted by path. What is hashed of each is its path, its shape and its values: the path's length
/// in bytes, the path, the number of axes, their lengths (all lengths as little-endian u64), the values as little-endian
/// f32. Of two tensors with the same path the later one counts.
pub fn weights_fingerprint<P, S, V>(tensors: impl IntoIterator<Item = (P, S, V)>) -> WeightsFingerprint
where
    P: Into<String>,
    S: AsRef<[usize]>,
    V: AsRef<[f32]>,
{
    let sorted: BTreeMap<String, (S, V)> =
        tensors.into_iter().map(|(path, shape, values)| (path.into(), (shape, values))).collect();
    let mut all = blake3::Hasher::new();
    let mut hashes = BTreeMap::new();
    for (path, (shape, values)) in sorted {
        let shape = shape.as_ref();
        let mut bytes = (path.len() as u64).to_le_bytes().to_vec();
        bytes.extend(path.as_bytes());
        bytes.extend((shape.len() as u64).to_le_bytes());
        bytes.extend(shape.iter().flat_map(|length| (*length as u64).to_le_bytes()));
        let mut one = blake3::Hasher::new();
        one.update(&bytes);
        all.update(&bytes);
        for chunk in values.as_ref().chunks(1 << 14) {
            bytes.clear();
            bytes.extend(chunk.iter().flat_map(|value| value.to_le_bytes()));
            one.update(&bytes);
            all.update(&bytes);
        }
        let blake3 = one.finalize().to_hex().to_string();
        hashes.insert(path, TensorFingerprint { shape: shape.to_vec(), blake3 });
    }
    WeightsFingerprint { all: all.finalize().to_hex().to_string(), tensors: hashes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            config: "seed = 3\n".into(),
            program: Program { version: "0.1.0".into(), commit: None, dirty: Some(true), build: None },
            backend: "flex".into(),
            device: "CPU".into(),
            threads: 2,
            parameters: [("embedding", 1024), ("attention", 16_576)].into_iter().collect(),
            flops_per_step: [("attention", 100), ("logits", 7)].into_iter().collect(),
            tokens_per_step: 2048,
            resumed: vec![],
            files: vec![],
            simd: None,
            fingerprints: Fingerprints {
                data: "aa".into(),
                weights: "bb".into(),
                tensors: [("token.weight".to_string(), TensorFingerprint { shape: vec![16, 64], blake3: "cc".into() })]
                    .into(),
            },
        }
    }

    #[test]
    fn manifests_go_both_ways() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.json");
        manifest().write(&path).unwrap();
        assert_eq!(Manifest::read(&path).unwrap(), manifest());
        insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
        {
          "config": "seed = 3\n",
          "program": {
            "version": "0.1.0",
            "commit": null,
            "dirty": true
          },
          "backend": "flex",
          "device": "CPU",
          "threads": 2,
          "parameters": {
            "embedding": 1024,
            "attention": 16576,
            "total": 17600
          },
          "flops_per_step": {
            "attention": 100,
            "logits": 7,
            "total": 107
          },
          "tokens_per_step": 2048,
          "fingerprints": {
            "data": "aa",
            "weights": "bb",
            "tensors": {
              "token.weight": {
                "shape": [
                  16,
                  64
                ],
                "blake3": "cc"
              }
            }
          },
          "blake3": "b60496c489ebeb9b50117f0ba5530f7405c24b44c91988a56fdcb15443ad42d3"
        }
        "#);
    }

    #[test]
    fn a_total_that_does_not_add_up_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.json");
        let text = serde_json::to_string_pretty(&manifest()).unwrap();
        for (from, to, expected) in [
            ("17600", "17601", "add up to 17600"),
            ("\"total\": 107", "\"rest\": 107", "missing field `total`"),
            ("\"threads\": 2", "\"threads\": \"2\"", "invalid type"),
        ] {
            // Sealed as it is: what is read is not only undamaged.
            let value: serde_json::Value = serde_json::from_str(&text.replace(from, to)).unwrap();
            sealed::write(&path, &value).unwrap();
            let error = Manifest::read(&path).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("manifest.json:"), "{error}");
        }
    }

    #[test]
    fn the_weights_fingerprint_sees_paths_shapes_and_every_bit_but_no_order() {
        let base = || vec![("a", vec![2, 1], vec![1.0, 2.0]), ("b", vec![2], vec![0.0, 4.0])];
        let print = weights_fingerprint(base());
        assert_eq!(print, weights_fingerprint(base().into_iter().rev()));
        assert_eq!(print.tensors.len(), 2);
        for (index, changed) in [
            (0, ("a", vec![1, 2], vec![1.0, 2.0])),
            (0, ("c", vec![2, 1], vec![1.0, 2.0])),
            (1, ("b", vec![2], vec![-0.0, 4.0])),
        ] {
            let mut other = base();
            other[index] = changed;
            let other = weights_fingerprint(other);
            assert_ne!(print.all, other.all);
            let kept = ["b", "a"][index];
            assert_eq!(print.tensors[kept], other.tensors[kept]);
        }
        // The bytes that the documentation lists, by hand.
        let one = weights_fingerprint([("a", [2, 1], [1.0f32, 2.0])]);
        let bytes = [&1u64.to_le_bytes()[..], b"a", &2u64.to_le_bytes(), &2u64.to_le_bytes(), &1u64.to_le_bytes()]
            .concat()
            .into_iter()
            .chain([0, 0, 128, 63, 0, 0, 0, 64])
            .collect::<Vec<u8>>();
        assert_eq!(one.all, blake3::hash(&bytes).to_hex().to_string());
        assert_eq!(one.tensors["a"], TensorFingerprint { shape: vec![2, 1], blake3: one.all });
    }
}
