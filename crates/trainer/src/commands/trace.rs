//! `trainer trace`: one forward pass of a run's model, step by step.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use report::terminal;
use runs::forward::{ForwardPass, MaskKind};

use super::files::open_run;
use super::heads::device;
use crate::machine::exit::{Failure, Success};
use crate::screen::output::{next, print, print_json};

/// Arguments of `trace`.
#[derive(Args, Clone, Debug)]
pub struct TraceArguments {
    /// The run directory.
    pub run: PathBuf,
    /// Which sample of the validation set, from 0 on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub sample: u64,
    /// Which position asks, from 0 on; the last one that is scored unless set.
    #[arg(long, value_name = "POSITION")]
    pub query: Option<usize>,
    /// Which layer, from 0 on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub layer: usize,
    /// Leave a mask out, with the same weights, to see what leaks; may be repeated.
    #[arg(long, value_name = "MASK")]
    pub without: Vec<Mask>,
    /// Print every number of every choice of masks as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A mask, as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mask {
    Causal,
    Padding,
}

impl From<Mask> for MaskKind {
    fn from(mask: Mask) -> Self {
        match mask {
            Mask::Causal => Self::Causal,
            Mask::Padding => Self::Padding,
        }
    }
}

pub fn run(arguments: &TraceArguments) -> Result<Success, Failure> {
    let pass = of_run(&arguments.run, arguments.sample)?;
    if arguments.json {
        print_json(&pass);
        return Ok(Success::Done);
    }
    let mut without: Vec<MaskKind> = arguments.without.iter().map(|&mask| mask.into()).collect();
    without.sort();
    without.dedup();
    let can_go = |mask: &MaskKind| pass.passes.iter().any(|masked| masked.without.contains(mask));
    if let Some(absent) = without.iter().find(|mask| !can_go(mask)) {
        let why = match pass.masks.contains(absent) {
            true => "a decoder beside an encoder is always causal".to_string(),
            false => format!("the model has no {} mask in this sample", absent.name()),
        };
        return Err(Failure::usage(format!("--without {}: {why}", absent.name())));
    }
    let last = pass.tokens.iter().rposition(|token| token.target.is_some()).unwrap_or_default();
    let query = arguments.query.unwrap_or(last);
    let told = terminal::trace(&pass, &without, arguments.layer, query).ok_or_else(|| {
        Failure::usage(format!(
            "there is no position {query} in layer {}: the sample has {} positions, and the layers that are shown are counted from 0",
            arguments.layer,
            pass.tokens.len()
        ))
    })?;
    print(told);
    let run = arguments.run.display();
    next(match without.is_empty() && can_go(&MaskKind::Causal) {
        true => format!("trainer trace {run} --without causal"),
        false => format!("trainer report {run} --open"),
    });
    Ok(Success::Done)
}

/// Sample `sample` through the last model of the run in `folder`.
pub fn of_run(folder: &Path, sample: u64) -> Result<ForwardPass, Failure> {
    let run = open_run(folder)?;
    analysis::forward_pass(&run, sample, &device(run.config().backend)?).map_err(Failure::failed)
}
