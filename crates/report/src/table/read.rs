//! A table as text: what is in it, or what is wrong with it, by line and field.

use std::collections::{BTreeMap, BTreeSet};

use csv::{ReaderBuilder, StringRecord, Trim};
use statistics::{MetricScale, outcome::Direction};
use thiserror::Error;

use super::{Options, Table, TableArm};
use crate::{limits, text::listed};

/// What is wrong with a table. Lines count from 1, the header included.
#[derive(Debug, Error)]
pub enum TableError {
    /// More of something than is read.
    #[error("{what}: {got} are too many, at most {most} are read")]
    TooMany { what: &'static str, got: usize, most: usize },
    /// Not a table: quotes that do not end, a line with another number of fields.
    #[error("line {line}: {problem}")]
    Line { line: u64, problem: String },
    /// A column that must be there.
    #[error("there is no column {wanted}; the header has {}", .columns.join(", "))]
    NoColumn { wanted: String, columns: Vec<String> },
    /// Several columns that may be meant.
    #[error("{what} may be any of the columns {}: {help}", .columns.join(", "))]
    SeveralColumns { what: &'static str, columns: Vec<String>, help: &'static str },
    /// A field that can't be read.
    #[error("line {line}, field `{field}`: `{value}` is no {wanted}")]
    Field { line: u64, field: String, value: String, wanted: &'static str },
    /// Twice the same run, or the same step of a run.
    #[error("line {line}: {what} was there before")]
    Twice { line: u64, what: String },
    /// Two values of an arm at what is swept.
    #[error("line {line}, field `{field}`: {arm} had {before} before, now {now}")]
    OtherValue { line: u64, field: String, arm: String, before: f64, now: f64 },
    /// Fewer than two arms, or pairs that no arm shares.
    #[error("{0}")]
    TooFew(String),
    /// An option that does not fit the table.
    #[error("{option}: {problem}")]
    Option { option: &'static str, problem: String },
}

const ARM: [&str; 4] = ["arm", "model", "method", "setting"];
const PAIR: [&str; 4] = ["pair", "seed", "run", "repetition"];
const STEP: [&str; 3] = ["step", "iteration", "epoch"];
const METRIC: [&str; 3] = ["metric", "score", "result"];
const NUMBER: &str = "value";

/// Which column is what.
struct Columns {
    names: Vec<String>,
    arm: usize,
    pair: usize,
    metric: usize,
    step: Option<usize>,
    number: Option<usize>,
}

pub(super) fn table(text: &str, options: &Options) -> Result<Table, TableError> {
    if text.len() > limits::TABLE_BYTES {
        return Err(TableError::TooMany { what: "bytes", got: text.len(), most: limits::TABLE_BYTES });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = ReaderBuilder::new().trim(Trim::All).delimiter(delimiter(text)).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| of_csv(&error))?.clone();
    let columns = Columns::of(&header, options)?;
    let mut arms: Vec<TableArm> = vec![];
    let mut pairs: Vec<u64> = vec![];
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    let mut rows = 0;
    for record in reader.records() {
        let record = record.map_err(|error| of_csv(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        rows += 1;
        if rows > limits::TABLE_ROWS {
            return Err(TableError::TooMany { what: "rows", got: rows, most: limits::TABLE_ROWS });
        }
        let row = Row { line, record: &record, columns: &columns };
        let (pair, point, number) = (row.pair()?, row.point()?, row.number()?);
        let arm = arm_of(&mut arms, &row)?;
        if let Some(now) = number {
            let before = *arm.value.get_or_insert(now);
            if before != now {
                let field = row.field(columns.number).into();
                return Err(TableError::OtherValue { line, field, arm: arm.name.clone(), before, now });
            }
        }
        if seen.insert(pair) {
            pairs.push(pair);
            if pairs.len() > limits::TABLE_PAIRS {
                return Err(TableError::TooMany { what: "pairs", got: pairs.len(), most: limits::TABLE_PAIRS });
            }
        }
        let Some(point) = point else { continue };
        let points = &mut arm.runs.entry(pair).or_default().points;
        if columns.step.is_none() && !points.is_empty() {
            let what = format!("pair {pair} of arm `{}`", arm.name);
            return Err(TableError::Twice { line, what });
        }
        points.push(point);
    }
    sort_points(&mut arms)?;
    finish(text, options, &columns, arms, pairs)
}

/// Semicolons and tabs where the header has them and no comma.
fn delimiter(text: &str) -> u8 {
    let header = text.lines().next().unwrap_or_default();
    let is = |c: char| !header.contains(',') && header.contains(c);
    if is('\t') {
        b'\t'
    } else if is(';') {
        b';'
    } else {
        b','
    }
}

fn of_csv(error: &csv::Error) -> TableError {
    let line = error.position().map_or(1, csv::Position::line);
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields where the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "not UTF-8".into(),
        other => format!("{other:?}"),
    };
    TableError::Line { line, problem }
}

impl Columns {
    fn of(header: &StringRecord, options: &Options) -> Result<Self, TableError> {
        let names: Vec<String> = header.iter().map(cut).collect();
        if names.len() > limits::TABLE_COLUMNS {
            return Err(TableError::TooMany { what: "columns", got: names.len(), most: limits::TABLE_COLUMNS });
        }
        let known = |known: &[&str]| -> Vec<usize> {
            let is_known = |name: &String| known.iter().any(|known| name.eq_ignore_ascii_case(known));
            names.iter().enumerate().filter(|(_, name)| is_known(name)).map(|(place, _)| place).collect()
        };
        let listed = |places: &[usize]| places.iter().map(|place| names[*place].clone()).collect::<Vec<_>>();
        let one = |what, wanted: &[&str]| match known(wanted)[..] {
            [only] => Ok(only),
            [] => Err(TableError::NoColumn { wanted: told(wanted), columns: names.clone() }),
            // A pair that is named is meant before a seed, a run or a repetition beside it.
            [first, ..] if names[first].eq_ignore_ascii_case(wanted[0]) => Ok(first),
            ref several => Err(TableError::SeveralColumns { what, columns: listed(several), help: "leave one" }),
        };
        let (arm, pair) = (one("the arm", &ARM)?, one("the pair", &PAIR)?);
        let step = known(&STEP).first().copied();
        let sweep: Option<Vec<usize>> = options.sweep.as_ref().map(|one| {
            let many = format!("{one}s");
            known(&[NUMBER, one.as_str(), many.as_str()])
        });
        let number = sweep.as_ref().and_then(|places| places.first().copied());
        let is_left = |place: &usize| {
            ![Some(arm), Some(pair), step, number].contains(&Some(*place)) && !known(&PAIR).contains(place)
        };
        let left: Vec<usize> = (0..names.len()).filter(is_left).collect();
        let metric = match &options.metric {
            Some(name) => {
                let plain = |name: &str| name.to_ascii_lowercase().replace([' ', '-'], "_");
                let found = left.iter().copied().find(|place| plain(&names[*place]) == plain(name));
                found.ok_or_else(|| TableError::NoColumn { wanted: format!("`{name}`"), columns: names.clone() })?
            }
            None => match (known(&METRIC)[..].first(), &left[..]) {
                (Some(usual), _) => *usual,
                (None, [only]) => *only,
                (None, []) => return Err(TableError::NoColumn { wanted: "of values".into(), columns: names }),
                (None, several) => {
                    let (what, columns) = ("the metric", listed(several));
                    return Err(TableError::SeveralColumns { what, columns, help: "choose one with --metric" });
                }
            },
        };
        Ok(Self { names, arm, pair, metric, step, number })
    }
}

/// One line.
struct Row<'a> {
    line: u64,
    record: &'a StringRecord,
    columns: &'a Columns,
}

impl Row<'_> {
    fn value(&self, place: usize) -> &str {
        self.record.get(place).unwrap_or_default()
    }

    fn field(&self, place: Option<usize>) -> &str {
        place.and_then(|place| self.columns.names.get(place)).map_or("", String::as_str)
    }

    fn wrong(&self, place: usize, wanted: &'static str) -> TableError {
        let (field, value) = (self.field(Some(place)).to_string(), cut(self.value(place)));
        TableError::Field { line: self.line, field, value, wanted }
    }

    fn whole(&self, place: usize, wanted: &'static str) -> Result<u64, TableError> {
        self.value(place).parse().map_err(|_| self.wrong(place, wanted))
    }

    fn pair(&self) -> Result<u64, TableError> {
        self.whole(self.columns.pair, "whole number from 0 on")
    }

    /// Step and value; `None` for a run that is missing. NaN stands for a run that had diverged.
    fn point(&self) -> Result<Option<(u64, f64)>, TableError> {
        let step = match self.columns.step {
            Some(place) => self.whole(place, "step, a whole number from 0 on")?,
            None => 0,
        };
        let place = self.columns.metric;
        let value = self.value(place);
        if ["", "na", "missing"].iter().any(|missing| value.eq_ignore_ascii_case(missing)) {
            return Ok(None);
        }
        if value.eq_ignore_ascii_case("diverged") {
            return Ok(Some((step, f64::NAN)));
        }
        let number: f64 = value.parse().map_err(|_| self.wrong(place, "number, `diverged` or empty"))?;
        // What sums and squares would not stay finite with has left the numbers.
        Ok(Some((step, crate::deciding::finite(number).unwrap_or(f64::NAN))))
    }

    fn number(&self) -> Result<Option<f64>, TableError> {
        let Some(place) = self.columns.number else { return Ok(None) };
        let number = self.value(place).parse().ok().and_then(crate::deciding::finite);
        number.map(Some).ok_or_else(|| self.wrong(place, "number"))
    }
}

fn arm_of<'a>(arms: &'a mut Vec<TableArm>, row: &Row<'_>) -> Result<&'a mut TableArm, TableError> {
    let name = row.value(row.columns.arm);
    if name.is_empty() || name.chars().count() > limits::TABLE_NAME {
        return Err(row.wrong(row.columns.arm, "name of an arm (1 to 100 characters)"));
    }
    let place = match arms.iter().position(|arm| arm.name == name) {
        Some(place) => place,
        None => {
            arms.push(TableArm { name: name.into(), value: None, runs: BTreeMap::new() });
            arms.len() - 1
        }
    };
    if arms.len() > limits::TABLE_ARMS {
        return Err(TableError::TooMany { what: "arms", got: arms.len(), most: limits::TABLE_ARMS });
    }
    Ok(&mut arms[place])
}

/// Steps in their order, none twice.
fn sort_points(arms: &mut [TableArm]) -> Result<(), TableError> {
    for arm in arms {
        for (pair, run) in &mut arm.runs {
            run.points.sort_by_key(|(step, _)| *step);
            if let Some(two) = run.points.windows(2).find(|two| two[0].0 == two[1].0) {
                let what = format!("step {} of pair {pair} of arm `{}`", two[0].0, arm.name);
                return Err(TableError::TooFew(format!("{what} is there twice")));
            }
        }
    }
    Ok(())
}

fn finish(
    text: &str,
    options: &Options,
    columns: &Columns,
    mut arms: Vec<TableArm>,
    pairs: Vec<u64>,
) -> Result<Table, TableError> {
    if arms.len() < 2 {
        return Err(TableError::TooFew(format!("{} in the table: a comparison needs two", counted(arms.len(), "arm"))));
    }
    let metric = columns.names.get(columns.metric).cloned().unwrap_or_default();
    check_options(options, &arms)?;
    if options.sweep.is_some() {
        number_arms(&mut arms)?;
    }
    let scale = scale(options, &metric, &arms)?;
    let mut complete = vec![];
    let mut incomplete = vec![];
    for pair in pairs {
        let misses = |arm: &&TableArm| !arm.runs.contains_key(&pair);
        let missing: Vec<String> = arms.iter().filter(misses).map(|arm| arm.name.clone()).collect();
        if missing.is_empty() { complete.push(pair) } else { incomplete.push((pair, missing)) }
    }
    if complete.is_empty() {
        return Err(TableError::TooFew("no pair has a run of every arm: the same seeds must be in all of them".into()));
    }
    Ok(Table {
        options: options.clone(),
        metric,
        scale,
        arms,
        pairs: complete,
        incomplete,
        has_steps: columns.step.is_some(),
        text: text.into(),
    })
}

fn check_options(options: &Options, arms: &[TableArm]) -> Result<(), TableError> {
    let wrong = |option, problem: String| Err(TableError::Option { option, problem });
    if !(0.0..=1e9).contains(&options.margin) {
        return wrong("--margin", format!("{} is out of range: 0 or more", options.margin));
    }
    for (option, value) in [("--threshold", options.threshold), ("--penalty", options.penalty)] {
        if let Some(value) = value.filter(|value| crate::deciding::finite(*value).is_none()) {
            return wrong(option, format!("{value} is no finite number"));
        }
    }
    let unknown = options.baseline.as_ref().filter(|baseline| !arms.iter().any(|arm| arm.name == **baseline));
    if let Some(baseline) = unknown {
        let names: Vec<String> = arms.iter().map(|arm| format!("`{}`", arm.name)).collect();
        return wrong("--baseline", format!("there is no arm `{}`; there are {}", cut(baseline), listed(&names)));
    }
    if !options.looks.is_empty()
        && let Err(error) = statistics::looks::Looks::new(options.looks.clone())
    {
        return wrong("--looks", error.to_string());
    }
    Ok(())
}

/// Each arm without a number gets that in its name, of which there must be one.
fn number_arms(arms: &mut [TableArm]) -> Result<(), TableError> {
    let wrong = |problem| Err(TableError::Option { option: "--sweep", problem });
    for arm in arms.iter_mut().filter(|arm| arm.value.is_none()) {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let parts = arm.name.split(|c| !is_part(c)).map(|part| part.trim_matches('.'));
        let numbers: Vec<f64> = parts.filter_map(|part| part.parse().ok()).collect();
        let [number] = numbers[..] else {
            let name = &arm.name;
            let count = if numbers.is_empty() { "no number" } else { "several numbers" };
            return wrong(format!("the name `{name}` has {count} in it: add a column `value`"));
        };
        arm.value = Some(number);
    }
    let mut values: Vec<f64> = arms.iter().filter_map(|arm| arm.value).collect();
    values.sort_by(f64::total_cmp);
    match values.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => wrong(format!("two arms have the number {}", two[0])),
        None => Ok(()),
    }
}

/// What the metric means, from the options and, where they leave no doubt, from its name.
fn scale(options: &Options, metric: &str, arms: &[TableArm]) -> Result<MetricScale, TableError> {
    let plain = metric.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| plain.contains(part));
    let is_loss = has(&["loss", "error", "perplexity", "ppl", "mse", "mae", "nll", "wer"]);
    let is_accuracy = has(&["acc", "share", "f1", "auc"]);
    let direction = match options.direction {
        Some(direction) => direction,
        None if is_accuracy && !is_loss => Direction::HigherIsBetter,
        None if is_loss && !is_accuracy => Direction::LowerIsBetter,
        None => {
            let problem = format!("which way `{}` improves, its name does not say", cut(metric));
            return Err(TableError::Option { option: "--higher-is-better or --lower-is-better", problem });
        }
    };
    let points = || arms.iter().flat_map(|arm| arm.runs.values()).flat_map(|run| &run.points);
    let values = || points().map(|point| point.1).filter(|value| value.is_finite());
    let is_share = values().all(|value| (0.0..=1.0).contains(&value));
    let best = (is_accuracy && is_share && direction == Direction::HigherIsBetter).then_some(1.0);
    let has_diverged = points().any(|point| !point.1.is_finite());
    let penalty = match options.penalty {
        Some(penalty) => penalty,
        None if best.is_some() => 0.0,
        None if has_diverged => {
            let problem = "runs diverged: say what they enter with, such as the value of a model that knows nothing";
            return Err(TableError::Option { option: "--penalty", problem: problem.into() });
        }
        // Nothing enters with it.
        None => values().reduce(|worst, value| direction.worse(worst, value)).unwrap_or_default(),
    };
    let scale = MetricScale { name: metric.replace('_', " "), direction, best, penalty };
    scale.check().map_err(|error| TableError::Option { option: "--penalty", problem: error.to_string() })?;
    Ok(scale)
}

fn told(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" or ")
}

fn counted(count: usize, what: &str) -> String {
    crate::text::counted(count, what)
}

/// Text from elsewhere, short enough for a message.
fn cut(text: &str) -> String {
    if text.chars().count() <= limits::TABLE_NAME {
        return text.into();
    }
    text.chars().take(limits::TABLE_NAME).chain(['…']).collect()
}
