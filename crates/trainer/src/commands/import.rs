//! `trainer import`: the results of others, from a table, get the same verdicts, answers and page as runs of ours.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use report::table::{Options, Table};
use report::{page, terminal};
use runs::experiment;
use statistics::Direction;

use super::files::refuse_linked;
use super::report::print_result;
use crate::machine::exit::{Failure, Success};
use crate::screen::output::{one_line, print};

/// Bytes of a table that are read: a little more than it may have.
const MOST: u64 = (32 << 20) + 1;

/// Arguments of `import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArguments {
    /// A CSV file with a header and one line a run: columns `arm`, `seed` (or `pair`), one of values and, where runs have
    /// curves, `step`. A run that diverged has `diverged` or `nan` for a value.
    #[arg(value_name = "FILE.csv")]
    pub file: PathBuf,
    /// The smallest difference that matters, fixed before anyone looked.
    #[arg(long)]
    pub margin: f64,
    /// The column of the deciding metric, where several could be it.
    #[arg(long, value_name = "COLUMN")]
    pub metric: Option<String>,
    /// A lower value is better, as of a loss. Needed where the name does not say it.
    #[arg(long, conflicts_with = "higher_is_better")]
    pub lower_is_better: bool,
    /// A higher value is better, as of an accuracy. Needed where the name does not say it.
    #[arg(long)]
    pub higher_is_better: bool,
    /// The arm that the others are held against; the first of the table unless set.
    #[arg(long, value_name = "ARM")]
    pub baseline: Option<String>,
    /// A run at this value or better solved the task.
    #[arg(long, allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// Numbers of pairs at which a decision was due, such as 6,10,15,20; one look at all of them unless set.
    #[arg(long, value_delimiter = ',', value_name = "PAIRS")]
    pub looks: Vec<usize>,
    /// What a run that diverged enters with, such as the loss of a model that knows nothing; 0 for accuracies.
    #[arg(long, allow_negative_numbers = true)]
    pub penalty: Option<f64>,
    /// Answer how many of what the arms have are enough: numbers are in a column `value`, or in the arms' names (h4).
    #[arg(long, value_name = "OF_WHAT", num_args = 0..=1, default_missing_value = "head")]
    pub sweep: Option<String>,
    /// Where results.json, report.html and the figures go; the answer is only shown unless set.
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}

pub fn run(arguments: &ImportArguments) -> Result<Success, Failure> {
    let options = options(arguments);
    let shown = || arguments.file.display();
    let text = read(&arguments.file)?;
    let table = Table::read(&text, &options).map_err(|error| Failure::usage(format!("{}: {error}", shown())))?;
    let report = table.report().map_err(Failure::failed)?;
    let Some(folder) = &arguments.output else {
        print_result(&terminal::answer(&report.results));
        return Ok(Success::Done);
    };
    refuse_linked(folder)?;
    for (file, what) in [(experiment::FILE, "an experiment's"), ("config.toml", "a run's")] {
        if folder.join(file).exists() {
            return Err(Failure::usage(format!("{} is {what} folder: its results are its own", folder.display())));
        }
    }
    report.write(folder).map_err(Failure::failed)?;
    print_result(&terminal::answer(&report.results));
    print(format!("\n  {}  all of this as a page, to open or to send", folder.join(page::FILE).display()));
    Ok(Success::Done)
}

fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let mut text = String::new();
    // What is cut off is too long, and said to be.
    File::open(path).and_then(|file| file.take(MOST).read_to_string(&mut text)).map_err(failed)?;
    Ok(text)
}

fn options(arguments: &ImportArguments) -> Options {
    let direction = match (arguments.higher_is_better, arguments.lower_is_better) {
        (true, _) => Some(Direction::HigherIsBetter),
        (_, true) => Some(Direction::LowerIsBetter),
        (false, false) => None,
    };
    let name = arguments.file.file_stem().map_or_else(|| "table".into(), |name| name.to_string_lossy().into_owned());
    Options {
        name: one_line(&name),
        metric: arguments.metric.clone(),
        direction,
        margin: arguments.margin,
        baseline: arguments.baseline.clone(),
        threshold: arguments.threshold,
        looks: arguments.looks.clone(),
        penalty: arguments.penalty,
        sweep: arguments.sweep.clone(),
        command: command(arguments),
    }
}

/// The command that makes the same again, for the page.
fn command(arguments: &ImportArguments) -> String {
    let name = arguments.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut command = format!("cargo run -p trainer -- import {} --margin {}", quoted(&name), arguments.margin);
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            command += &format!(" --{name} {}", quoted(&value));
        }
    };
    option("metric", arguments.metric.clone());
    option("baseline", arguments.baseline.clone());
    option("threshold", arguments.threshold.map(|value| value.to_string()));
    let looks: Vec<String> = arguments.looks.iter().map(usize::to_string).collect();
    option("looks", (!looks.is_empty()).then(|| looks.join(",")));
    option("penalty", arguments.penalty.map(|value| value.to_string()));
    option("sweep", arguments.sweep.clone());
    for (flag, is_set) in
        [("lower-is-better", arguments.lower_is_better), ("higher-is-better", arguments.higher_is_better)]
    {
        if is_set {
            command += &format!(" --{flag}");
        }
    }
    command + " -o results"
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
