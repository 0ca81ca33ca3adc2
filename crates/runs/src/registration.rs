//! `registration.json`: what of an experiment stood before its first run, and every change since.
//!
//! Whoever may choose the margin after the runs can have any verdict. So metric, margin, arms, seeds, looks, tuning,
//! instances and prediction are written down, with the time, before anything is trained; a later change stays possible, and
//! is appended with how many runs had ended by then. What is said about an experiment (`[about]`, labels) may change freely.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::{
    document::{ConfigError, leaves},
    error::RunError,
    experiment::{About, Claim, Experiment, Predicted},
    files, limits, sealed,
};

/// What was registered, in the experiment's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// BLAKE3 of `content`, 64 hex digits.
    pub hash: String,
    /// When, in UTC, such as `2026-11-30T23:51:58Z`.
    pub registered: String,
    /// How many runs had ended by then: none, unless the folder had runs before it had a registration.
    pub ended: usize,
    /// How many runs it has, those that choose learning rates included.
    pub runs: usize,
    /// The experiment as an `experiment.toml` that stands alone, without what is only said about it.
    pub content: String,
    /// Changes since, the first one first.
    pub amendments: Vec<Amendment>,
}

/// A change of what was registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amendment {
    /// When it was noticed, in UTC.
    pub time: String,
    /// What changed, such as `metric.margin: 0.02, now 0.01`; at least one.
    pub changed: Vec<String>,
    /// How many runs had ended by then.
    pub ended: usize,
    /// Of how many.
    pub runs: usize,
    /// BLAKE3 of `content`.
    pub hash: String,
    /// The experiment from then on.
    pub content: String,
}

/// Its name in the experiment's folder.
pub const FILE: &str = "registration.json";
/// Changes that are named one by one.
const NAMED: usize = 12;
/// Characters of a value that is still said.
const SHORT: usize = 60;

impl Registration {
    /// Registers an experiment now, when so many of its runs have ended.
    pub fn of(experiment: &Experiment, ended: usize, runs: usize) -> Self {
        let content = content(experiment);
        Self { hash: hash(&content), registered: now(), ended, runs, content, amendments: vec![] }
    }

    /// What a folder has; `None` where nothing was registered.
    ///
    /// # Errors
    /// Where the file is damaged or was edited, naming it.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        let path = folder.join(FILE);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        sealed::read(&path, limits::REGISTRATION).map(Some)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Where it is a link, and where the disk is full or gone.
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        files::refuse_link(&folder.join(FILE))?;
        sealed::write(&folder.join(FILE), self)
    }

    /// Registers the experiment of a folder where that wasn't done, or appends in what it has changed since; says how it
    /// stands.
    ///
    /// # Errors
    /// As [`Registration::read`] and [`Registration::write`].
    pub fn keep(folder: &Path, experiment: &Experiment) -> Result<Self, RunError> {
        let found = Self::read(folder)?;
        let now = found.clone().unwrap_or_else(|| {
            let (ended, runs) = experiment.ended_in(folder);
            Self::of(experiment, ended, runs)
        });
        let now = now.up_to_date(folder, experiment);
        if found.as_ref() != Some(&now) {
            now.write(folder)?;
        }
        Ok(now)
    }

    /// The same with in what the experiment has changed since, if in anything, and how many runs of the folder had ended of
    /// those that there were to be; nothing is written.
    #[must_use]
    pub fn up_to_date(self, folder: &Path, experiment: &Experiment) -> Self {
        if self.changes(experiment).is_empty() {
            return self;
        }
        let before = Experiment::parse(self.stands(), Path::new(FILE));
        let (ended, runs) = before.as_ref().unwrap_or(experiment).ended_in(folder);
        self.amended(experiment, ended, runs)
    }

    /// The same with in what the experiment has changed since, if in anything.
    #[must_use]
    fn amended(mut self, experiment: &Experiment, ended: usize, runs: usize) -> Self {
        let changed = self.changes(experiment);
        if !changed.is_empty() {
            let content = content(experiment);
            let hash = hash(&content);
            self.amendments.push(Amendment { time: now(), changed, ended, runs, hash, content });
        }
        self
    }

    /// In what an experiment differs from the one that stands, amendments included; none where it doesn't.
    pub fn changes(&self, experiment: &Experiment) -> Vec<String> {
        let stands = self.stands();
        let new = content(experiment);
        if stands == new {
            return vec![];
        }
        let read = |text: &str| Experiment::parse(text, Path::new(FILE));
        match (read(stands), read(&new)) {
            (Ok(old), Ok(new)) => changes(&old, &new),
            (Err(error), _) | (_, Err(error)) => {
                let problem = error.diagnostics().first().map(|diagnostic| diagnostic.problem.to_string());
                vec![format!("what was registered can't be read by this program: {}", problem.unwrap_or_default())]
            }
        }
    }

    /// The content that holds now.
    fn stands(&self) -> &str {
        self.amendments.last().map_or(&self.content, |amendment| &amendment.content)
    }

    /// The experiment as it was registered first.
    ///
    /// # Errors
    /// Where this program doesn't know what is in it, such as a task of another crate.
    pub fn experiment(&self) -> Result<Experiment, ConfigError> {
        Experiment::parse(&self.content, Path::new(FILE))
    }
}

/// What is registered of an experiment.
fn content(experiment: &Experiment) -> String {
    let mut plain = experiment.clone();
    plain.about = About::default();
    plain.published = None;
    for arm in &mut plain.arms {
        arm.label.clone_from(&arm.name);
    }
    plain.to_toml()
}

fn hash(content: &str) -> String {
    blake3::hash(content.as_bytes()).to_hex().to_string()
}

/// A value by its key.
type Values = BTreeMap<String, String>;

fn changes(old: &Experiment, new: &Experiment) -> Vec<String> {
    let mut found = compared(&settings(old), &settings(new), "");
    let both = || old.arms.iter().filter_map(|arm| Some((arm, new.arm(&arm.name)?)));
    let mut of_arms: Vec<(&str, Vec<String>)> = vec![];
    for (old, new) in both() {
        let config = |arm: &crate::Arm| -> Values { leaves(&arm.config.to_toml()).into_iter().collect() };
        let mut changed = compared(&config(old), &config(new), "");
        if old.seed_offset != new.seed_offset {
            changed.push(said("seed_offset", &old.seed_offset.to_string(), &new.seed_offset.to_string()));
        }
        of_arms.push((&old.name, changed));
    }
    // What changed alike in every arm is said once.
    let everywhere = |change: &String| of_arms.iter().all(|(_, changed)| changed.contains(change));
    if let Some((_, first)) = of_arms.first() {
        found.extend(first.iter().filter(|change| everywhere(change)).cloned());
    }
    for (arm, changed) in &of_arms {
        found.extend(changed.iter().filter(|change| !everywhere(change)).map(|change| format!("arms.{arm}.{change}")));
    }
    if found.len() > NAMED {
        let more = found.len() - NAMED;
        found.truncate(NAMED);
        found.push(format!("and {more} more"));
    }
    found
}

fn compared(old: &Values, new: &Values, none: &str) -> Vec<String> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let value = |values: &Values, key: &str| values.get(key).map_or(none, String::as_str).to_string();
    let differing = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    differing.map(|key| said(key, &value(old, key), &value(new, key))).collect()
}

fn said(key: &str, old: &str, new: &str) -> String {
    let is_short = [old, new].iter().all(|value| value.chars().count() <= SHORT);
    let shown = |value: &str| if value.is_empty() { "not set".to_string() } else { value.to_string() };
    if is_short { format!("{key}: {}, now {}", shown(old), shown(new)) } else { format!("{key}: another value now") }
}

/// What is not an arm's.
fn settings(experiment: &Experiment) -> Values {
    let Experiment {
        name,
        about: _,
        regime,
        metric,
        baseline,
        seeds,
        why_seeds,
        repetitions,
        sweep,
        tuning,
        vary,
        looks,
        predict,
        check,
        published: _,
        arms,
    } = experiment;
    let mut values = Values::new();
    let mut set = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            values.insert(key.into(), value);
        }
    };
    let numbers = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    set("name", Some(name.clone()));
    set("regime", Some(regime.name().into()));
    set("baseline", Some(baseline.clone()));
    set("seeds", Some(seeds_in_words(seeds)));
    set("why_seeds", why_seeds.clone());
    set("repetitions", Some(repetitions.to_string()));
    set("sweep", sweep.clone());
    set("metric.name", Some(metric.name.name()));
    set("metric.margin", Some(metric.margin.to_string()));
    set("metric.threshold", metric.threshold.map(|value| value.to_string()));
    set("metric.at", Some(metric.at.name().into()));
    set("metric.failure_difference", metric.failure_difference.map(|value| value.to_string()));
    set("metric.max_failure", metric.max_failure.map(|value| value.to_string()));
    if let Some(tuning) = tuning {
        set("tuning.lr", Some(tuning.lr.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")));
        set("tuning.seeds", Some(seeds_in_words(&tuning.seeds)));
    }
    set("vary", Some(vary.join(", ")).filter(|keys| !keys.is_empty()));
    set("looks", Some(numbers(looks)).filter(|looks| !looks.is_empty()));
    if let Some(check) = check {
        set("check.steps", Some(check.steps.to_string()));
        set("check.pairs", Some(check.pairs.to_string()));
    }
    let predicted: Vec<String> = predict.iter().map(Predicted::to_string).collect();
    set("predict", Some(predicted.join("; ")).filter(|text| !text.is_empty()));
    set("arms", Some(arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>().join(", ")));
    values
}

impl std::fmt::Display for Predicted {
    /// As the file has it: `sufficient = 4 where model.layers = 1`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.claim {
            Claim::Better { arm } => write!(formatter, "better = {arm:?}")?,
            Claim::Equivalent { arm: Some(arm) } => write!(formatter, "equivalent = {arm:?}")?,
            Claim::Equivalent { arm: None } => write!(formatter, "equivalent = true")?,
            Claim::Sufficient { value } => write!(formatter, "sufficient = {value}")?,
        }
        let level: Vec<String> = self.level.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        if level.is_empty() { Ok(()) } else { write!(formatter, " where {}", level.join(", ")) }
    }
}

/// "10, 0 to 9", or all of them.
fn seeds_in_words(seeds: &[u64]) -> String {
    match (seeds.first(), seeds.last()) {
        (Some(first), Some(last))
            if seeds.len() > 2 && seeds.windows(2).all(|two| two[0].checked_add(1) == Some(two[1])) =>
        {
            format!("{}, {first} to {last}", seeds.len())
        }
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The time in UTC, to the second, such as `2026-11-30T23:51:58Z`.
fn now() -> String {
    utc(OffsetDateTime::now_utc())
}

fn utc(time: OffsetDateTime) -> String {
    let (date, (hour, minute, second)) = (time.date(), time.to_hms());
    format!("{date}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "baseline = \"h1\"\n[metric]\nmargin = 0.02\n[base.task]\nkind = \"registers\"\n\
                         [arms.h1]\nmodel.heads = 1\n[arms.h8]\n";

    fn experiment(text: &str) -> Experiment {
        Experiment::parse(text, Path::new("small.toml")).unwrap()
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        // `date -u -d @SECONDS`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(OffsetDateTime::from_unix_timestamp(seconds).unwrap()), expected);
        }
    }

    #[test]
    fn what_is_said_about_an_experiment_changes_freely() {
        let registered = Registration::of(&experiment(SMALL), 0, 20);
        let text = format!("{}label = \"eight\"\n[about]\nresult = \"as expected\"\n", SMALL);
        assert_eq!(registered.changes(&experiment(&text)), Vec::<String>::new());
        // It reads as what was registered.
        let read = registered.experiment().unwrap();
        assert_eq!((read.metric, read.seeds.len()), (experiment(SMALL).metric, 10));
    }

    #[test]
    fn every_change_is_said_once() {
        let registered = Registration::of(&experiment(SMALL), 0, 20);
        let changed = |from: &str, to: &str| {
            assert!(SMALL.contains(from), "{from}");
            registered.changes(&experiment(&SMALL.replacen(from, to, 1))).join("\n")
        };
        insta::assert_snapshot!(changed("margin = 0.02", "margin = 0.01\nat = \"best_validation\""), @r"
        metric.at: final, now best_validation
        metric.margin: 0.02, now 0.01
        ");
        insta::assert_snapshot!(changed("baseline", "seeds = 20\nlooks = [10, 20]\nbaseline"), @r"
        looks: not set, now 10, 20
        seeds: 10, 0 to 9, now 20, 0 to 19
        ");
        insta::assert_snapshot!(changed("[metric]", "[predict]\nbetter = \"h8\"\n[metric]"), @r#"predict: not set, now better = "h8""#);
        insta::assert_snapshot!(changed("[base.task]", "[base.train]\nsteps = 400\n[base.task]"), @"train.steps: 800, now 400");
        insta::assert_snapshot!(changed("[arms.h8]", "[arms.h4]\nmodel.heads = 4\n[arms.h8]"), @"arms: h1, h8, now h1, h4, h8");
        insta::assert_snapshot!(changed("[arms.h8]", "[arms.h8]\nmodel.heads = 16"), @"arms.h8.model.heads: 8, now 16");
    }

    /// A file of somebody else's program, sealed as it should be: what is in it is said not to be readable, and no more.
    #[test]
    fn content_that_nobody_can_read_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut registered = Registration::of(&experiment(SMALL), 0, 20);
        registered.content = "baseline = \"h1\"\n[base.task]\nkind = \"of another crate\"\n".into();
        registered.write(folder.path()).unwrap();
        let read = Registration::read(folder.path()).unwrap().unwrap();
        let changes = read.changes(&experiment(SMALL));
        assert!(changes[0].starts_with("what was registered can't be read by this program: "), "{changes:?}");
        assert_eq!(read.up_to_date(folder.path(), &experiment(SMALL)).amendments.len(), 1);
    }

    #[test]
    fn a_change_is_appended_with_the_runs_that_had_ended() {
        let folder = tempfile::tempdir().unwrap();
        let first = experiment(SMALL);
        let registered = Registration::keep(folder.path(), &first).unwrap();
        assert_eq!((registered.ended, registered.runs), (0, 20));
        // All runs but one end; then the margin changes.
        for run in first.runs_in(folder.path()).iter().skip(1) {
            std::fs::create_dir_all(run.directory.path()).unwrap();
            std::fs::write(run.directory.summary_path(), "{}").unwrap();
        }
        assert_eq!(Registration::keep(folder.path(), &first).unwrap(), registered);
        assert_eq!(Registration::read(folder.path()).unwrap(), Some(registered.clone()));

        let second = experiment(&SMALL.replace("0.02", "0.01"));
        let shown = registered.clone().up_to_date(folder.path(), &second);
        assert_eq!(Registration::read(folder.path()).unwrap(), Some(registered.clone()), "shown, not written");
        let amended = Registration::keep(folder.path(), &second).unwrap();
        assert_eq!(shown.amendments[0].changed, amended.amendments[0].changed);
        assert_eq!((&amended.hash, &amended.registered), (&registered.hash, &registered.registered));
        let [amendment] = &amended.amendments[..] else { panic!("{amended:?}") };
        assert_eq!((amendment.ended, amendment.runs), (19, 20));
        assert_eq!(amendment.changed, ["metric.margin: 0.02, now 0.01"]);
        assert_eq!(Registration::keep(folder.path(), &second).unwrap(), amended);
        // To take it back is a change, too; other runs are counted as those that there were to be.
        let third = experiment(&SMALL.replace("[base.task]", "[base.train]\nsteps = 400\n[base.task]"));
        let back = Registration::keep(folder.path(), &third).unwrap();
        assert_eq!(back.amendments[1].changed, ["metric.margin: 0.01, now 0.02", "train.steps: 800, now 400"]);
        assert_eq!((back.amendments[1].ended, back.amendments[1].runs), (19, 20));

        // A folder that has runs before it is registered says so.
        std::fs::remove_file(folder.path().join(FILE)).unwrap();
        assert_eq!(Registration::keep(folder.path(), &first).unwrap().ended, 19);

        let path = folder.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let edited = text.replace("\"ended\": 19", "\"ended\": 0");
        assert_ne!(edited, text);
        std::fs::write(&path, edited).unwrap();
        assert!(matches!(Registration::read(folder.path()), Err(RunError::Seal { .. })));
    }
}
