//! `trainer bench --growth`: sweeps over sizes, with a figure of each.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use report::figures;
use serde::Serialize;

use super::arguments::BenchArguments;
use super::told::{busy, conditions};
use crate::bench::growth::{Axis, Settings, Slope, Sweep, Swept, check, measure};
use crate::commands::files::write_output;
use crate::machine::exit::{Failure, Success};
use crate::screen::output::{print, tell};
use crate::screen::text::short;

/// Seconds of a point's steps unless set: all usual points then take under five minutes on two cores.
const SECONDS: f64 = 3.0;
/// Fastest and slowest matrix product of all points: beyond it, something else had the machine at times.
const STEADY: f64 = 1.3;

/// `growth.json`.
#[derive(Serialize)]
struct Document<'a> {
    sweeps: &'a [Swept],
}

pub fn run(arguments: &BenchArguments, folder: &Path, threads: usize) -> Result<Success, Failure> {
    let sweeps = if arguments.sweeps.is_empty() { Sweep::usual() } else { arguments.sweeps.clone() };
    let settings = Settings {
        backend: arguments.backend.unwrap_or_default(),
        threads,
        steps: arguments.steps as usize,
        seconds: arguments.seconds.unwrap_or(SECONDS),
    };
    let base = arguments.sizes.given().unwrap_or_default();
    check(base, &sweeps).map_err(Failure::usage)?;
    runs::files::check_folder(folder).map_err(Failure::failed)?;
    fs::create_dir_all(folder).map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
    let mut watch = |axis: Axis, value| tell(format!("measuring {} {value}", axis.name()));
    let swept = measure(base, &sweeps, settings, &mut watch).map_err(Failure::failed)?;

    let measured = || swept.iter().flat_map(|sweep| &sweep.points).filter_map(|point| point.measured.as_ref());
    if let Some(one) = measured().next() {
        print(conditions(one));
    }
    swept.iter().for_each(|sweep| print(lines(sweep)));
    if let Some(note) = busy(measured().filter_map(|one| one.share_waiting).reduce(f64::max)) {
        print(note);
    }
    let peaks = || measured().map(|one| one.matmul_gflops);
    let (least, most) = (peaks().fold(f64::INFINITY, f64::min), peaks().fold(0.0, f64::max));
    if most > STEADY * least {
        let (least, most) = (short(least), short(most));
        print(format!(
            "note: the machine was not steady: its fastest matrix product ranged from {least} to {most} GFLOP/s"
        ));
    }
    // Only maps with other keys than text could fail, and there are none.
    let json = serde_json::to_string_pretty(&Document { sweeps: &swept }).unwrap_or_default();
    write(folder, "growth.json", json + "\n")?;
    write(folder, "growth.csv", csv(&swept))?;
    for sweep in &swept {
        let Some(figure) = figures::growth(&sweep.growth()) else { continue };
        write(folder, &format!("{}.svg", figure.name), figure.svg)?;
    }
    match measured().next() {
        Some(_) => Ok(Success::Done),
        None => Err(Failure::failed("no point could be measured")),
    }
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let path = folder.join(name);
    write_output(&path, content.as_ref())?;
    print(format!("wrote {}", path.display()));
    Ok(())
}

/// A sweep as a table, and where it is steeper than its FLOPs.
fn lines(sweep: &Swept) -> String {
    let mut text =
        format!("\n{:<12}  ms a step      MiB  GFLOP/s    slope of time  of FLOPs  of memory", sweep.axis.name());
    for point in &sweep.points {
        let _ = write!(text, "\n{:>12}", point.value);
        match (&point.measured, &point.missing) {
            (Some(one), _) => {
                let memory = one.peak_memory.map_or("-".into(), |bytes| (bytes >> 20).to_string());
                let _ = write!(text, "  {:>9}  {memory:>7}  {:>7}", short(one.ms_per_step), short(one.gflops));
            }
            (None, missing) => {
                let _ = write!(text, "  not measured: {}", missing.as_deref().unwrap_or("unknown"));
            }
        }
        if let Some(slope) = sweep.slopes.iter().find(|slope| slope.to == point.value) {
            let memory = slope.memory.map_or("-".into(), |memory| format!("{memory:.2}"));
            let _ = write!(text, "    {:>13.2}  {:>8.2}  {memory:>9}", slope.time, slope.flops);
            text += if slope.is_cliff() { "  cliff" } else { "" };
        }
    }
    for Slope { from, to, excess, .. } in sweep.slopes.iter().filter(|slope| slope.is_cliff()) {
        let _ = write!(text, "\ncliff: from {from} to {to} time grows {excess:.2} times as much as the FLOPs");
    }
    text
}

fn csv(swept: &[Swept]) -> String {
    let mut text = "sweep,value,ms_per_step,lower_quartile,upper_quartile,ms_evaluation,peak_memory,memory_before,\
        flops_per_step,gflops,matmul_gflops,share_waiting,steps,missing\n"
        .to_string();
    for (sweep, point) in swept.iter().flat_map(|sweep| sweep.points.iter().map(move |point| (sweep, point))) {
        let _ = write!(text, "{},{},", sweep.axis.name(), point.value);
        let number = |bytes: Option<u64>| bytes.map_or(String::new(), |bytes| bytes.to_string());
        let _ = match &point.measured {
            Some(one) => writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},",
                one.ms_per_step,
                one.ms_quartiles[0],
                one.ms_quartiles[1],
                one.ms_evaluation,
                number(one.peak_memory),
                number(one.memory_before),
                one.flops_per_step,
                one.gflops,
                one.matmul_gflops,
                one.share_waiting.map_or(String::new(), |share| share.to_string()),
                one.steps
            ),
            None => {
                let missing = point.missing.as_deref().unwrap_or_default().replace('"', "\"\"");
                writeln!(text, ",,,,,,,,,,,\"{missing}\"")
            }
        };
    }
    text
}
