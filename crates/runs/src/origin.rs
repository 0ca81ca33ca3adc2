//! The run to which a file belongs.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{
    config::Config,
    differences::{self, Difference},
    error::RunError,
    layout::MANIFEST,
};

/// What a run computes and from what: every file of a run carries it, so that none is taken for another run's, wherever it
/// was copied to and however its folder is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The resolved config, as in `config.toml`.
    pub config: String,
    /// Fingerprint of the data, 64 hex digits: [`data::fingerprint()`].
    pub data: String,
    /// Fingerprint of all initial weights, 64 hex digits: [`crate::weights_fingerprint()`].
    pub weights: String,
}

impl Origin {
    /// The run of a config on data and from initial weights of these fingerprints.
    pub fn new(config: &Config, data: String, weights: String) -> Self {
        Self { config: config.to_toml(), data, weights }
    }

    /// 16 hex digits that tell runs apart, for places where the whole would be too much.
    pub fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in [&self.config, &self.data, &self.weights] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.finalize().to_hex().chars().take(16).collect()
    }

    /// Refuses a file of this origin beside the others of the run `own`.
    ///
    /// # Errors
    /// [`RunError::OtherRun`], with the keys in which the two differ.
    pub fn check(&self, own: &Self, path: &Path) -> Result<(), RunError> {
        let differences = self.differences(own);
        if differences.is_empty() {
            return Ok(());
        }
        Err(RunError::OtherRun { path: path.into(), beside: MANIFEST, differences })
    }

    /// In what it differs from another: keys of the config, and the two fingerprints as `data` and `weights`.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut found = differences::between_texts(&self.config, &other.config);
        if found.is_empty() && self.config != other.config {
            let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
            found.push(Difference { key: "config".into(), value: hash(&self.config), other: hash(&other.config) });
        }
        for (key, value, other) in [("data", &self.data, &other.data), ("weights", &self.weights, &other.weights)] {
            if value != other {
                found.push(Difference { key: key.into(), value: value.clone(), other: other.clone() });
            }
        }
        found
    }
}
