//! `trainer generate --bench`: the table of [`crate::generate::speed`].

use burn::tensor::Device;
use runs::Config;
use serde::Serialize;

use super::arguments::GenerateArguments;
use crate::generate::speed::{DecodingSpeed, groupings, measure};
use crate::machine::exit::{Failure, Success};
use crate::screen::output::{print, print_json, tell};
use crate::screen::text::{bytes, count};
use crate::training::arm::Arm;

/// What is printed with `--json`.
#[derive(Serialize)]
struct Measured<'a> {
    name: &'a str,
    backend: String,
    d_model: usize,
    layers: usize,
    heads: usize,
    rows: Vec<DecodingSpeed>,
}

pub fn run(arguments: &GenerateArguments, config: &Config, device: &Device) -> Result<Success, Failure> {
    let (model, dims) = (&config.model, Arm::new(config).dims());
    let mut rows = vec![];
    for &context in &arguments.context {
        for kv_heads in groupings(model.heads) {
            if !arguments.json {
                tell(format!("measuring {kv_heads} key/value heads at {context} positions"));
            }
            let row = measure(model, dims, kv_heads, context as usize, device).map_err(Failure::usage)?;
            rows.push(row);
        }
    }
    let backend = arguments.backend.unwrap_or(config.backend).to_string();
    let (d_model, layers, heads) = (model.d_model, model.layers, model.heads);
    let measured = Measured { name: &config.name, backend, d_model, layers, heads, rows };
    match arguments.json {
        true => print_json(&measured),
        false => print(measured.table()),
    }
    Ok(Success::Done)
}

impl Measured<'_> {
    fn table(&self) -> String {
        let mut lines = vec![
            format!(
                "{}: d_model {}, {}, {}; untrained, one sample, {}",
                self.name,
                self.d_model,
                count(self.layers, "layer"),
                count(self.heads, "head"),
                self.backend
            ),
            "                               tokens a second".to_string(),
            "context       kv heads      cache  with cache   without   times".to_string(),
        ];
        for row in &self.rows {
            lines.push(format!(
                "{:>7}  {} {:>9}  {:>9}  {:>10}  {:>8}  {:>6.1}",
                row.context,
                row.sharing(self.heads),
                row.kv_heads,
                bytes(row.cache_bytes),
                speed(row.cached),
                speed(row.uncached),
                row.cached / row.uncached
            ));
        }
        lines.extend(self.sharing_pays());
        lines.join("\n")
    }

    /// What one key/value head is worth at the longest context.
    fn sharing_pays(&self) -> Option<String> {
        let longest = self.rows.iter().map(|row| row.context).max()?;
        let at = |kv_heads| self.rows.iter().find(|row| row.context == longest && row.kv_heads == kv_heads);
        let (all, one) = (at(self.heads)?, at(1).filter(|_| self.heads > 1)?);
        Some(format!(
            "at {longest} positions one key/value head decodes {:.2} times as fast as {}, from 1/{} of the bytes",
            one.cached / all.cached,
            self.heads,
            all.cache_bytes / one.cache_bytes
        ))
    }
}

fn speed(tokens: f64) -> String {
    if tokens >= 100.0 { format!("{tokens:.0}") } else { format!("{tokens:.1}") }
}
