//! What is told of an experiment, and the one writer of its files.

use std::path::{Path, PathBuf};

use runs::heads::ExperimentHeads;
use serde::Serialize;

use crate::{
    figures, page,
    reading::ExperimentRuns,
    results::{Results, ResultsError, Timings},
    tables,
};

/// The results of an experiment, the time they took, and what its heads do.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentReport {
    /// What was found.
    pub results: Results,
    /// How long it took; `None` for results of others.
    pub timings: Option<Timings>,
    /// What the page shows beside the two.
    pub context: page::PageContext,
    /// What the heads do, where that was analysed.
    pub heads: Option<ExperimentHeads>,
}

impl ExperimentReport {
    /// The report of runs that were read.
    ///
    /// # Errors
    /// [`ResultsError::Mismatch`] where the runs aren't matched as their regime demands (program versions and backends
    /// may be mixed with `mixed_ok`), and [`ResultsError::NoRuns`]. A run that is missing or damaged is no error: it is
    /// named in [`Results::problems`].
    pub fn new(runs: &ExperimentRuns, mixed_ok: bool) -> Result<Self, ResultsError> {
        let results = Results::of(runs, mixed_ok)?;
        Ok(Self { results, timings: Some(Timings::of(runs)), context: page::PageContext::of(runs), heads: None })
    }

    /// With what the heads do.
    pub fn with_heads(self, heads: Option<ExperimentHeads>) -> Self {
        Self { heads, ..self }
    }

    /// Writes every file of the result into the experiment's folder and returns their paths.
    ///
    /// # Errors
    /// Where the disk is full or gone.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, ResultsError> {
        let figures_folder = folder.join("figures");
        runs::files::refuse_link(&figures_folder)?;
        std::fs::create_dir_all(&figures_folder)
            .map_err(|source| ResultsError::Folder { path: figures_folder.clone(), source })?;
        let mut written = vec![];
        let mut put = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            runs::files::write_output(&path, bytes)?;
            written.push(path);
            Ok::<(), ResultsError>(())
        };
        put("results.json", json(&self.results).as_bytes())?;
        if let Some(timings) = &self.timings {
            put("timings.json", json(timings).as_bytes())?;
        }
        put("runs.csv", tables::runs(&self.results).as_bytes())?;
        put("curves.csv", tables::curves(&self.results).as_bytes())?;
        let figures = figures::all(&self.results);
        for figure in &figures {
            put(&format!("figures/{}.svg", figure.name), figure.svg.as_bytes())?;
        }
        let page =
            page::of_experiment(&self.results, self.timings.as_ref(), &self.context, self.heads.as_ref(), &figures);
        put(page::FILE, page.as_bytes())?;
        if let Some(heads) = &self.heads {
            let path = folder.join("heads.json");
            heads.write(&path)?;
            written.push(path);
        }
        Ok(written)
    }
}

fn json(value: &impl Serialize) -> String {
    // Only maps with keys that aren't text could fail, and there are none.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
