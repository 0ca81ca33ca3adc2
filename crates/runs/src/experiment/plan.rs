//! How many pairs, when they are looked at, and over which instances of the task they speak.

use serde::{Deserialize, Serialize};

use super::{Arm, Tuning};
use crate::{
    config::Config,
    document::{ConfigError, Diagnostic, KeyPlace, Problem, Section, shorten},
    limits,
    nearest::{list, nearest},
};

/// The fewest pairs at which anything is decided: that of the statistics.
const FEWEST_PAIRS: usize = 6;

/// A few pairs that train longer, after the reported runs: does the answer hold? They are the first pairs, so that each run
/// has the shorter one of the same seed, data and initial weights beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// So many times the steps, 2 to 64, under a schedule over all of them.
    pub steps: u64,
    /// How many pairs, at most those that are reported.
    #[serde(default = "usual_pairs")]
    pub pairs: usize,
}

fn usual_pairs() -> usize {
    3
}

impl Check {
    /// The config of a run that trains so much longer.
    pub fn config(&self, config: Config) -> Config {
        let mut config = config;
        config.train.steps = config.train.steps.saturating_mul(self.steps);
        config
    }
}

/// `looks`: numbers of pairs, rising to all of them.
///
/// Where only the number of seeds was set otherwise, the file's looks before it stay, and the last is at the new number.
pub(super) fn looks(
    root: &Section<'_>,
    pairs: usize,
    repetitions: u64,
    has_other_seeds: bool,
) -> Result<Vec<usize>, ConfigError> {
    let mut looks: Vec<usize> = root.value("looks")?.unwrap_or_default();
    let is_the_file_s = root.get("looks").is_some_and(|node| matches!(node.place, KeyPlace::File { .. }));
    if has_other_seeds && is_the_file_s && !looks.is_empty() {
        looks.retain(|look| *look < pairs);
        looks.push(pairs);
        if pairs < FEWEST_PAIRS {
            looks.clear(); // nothing is decided, at the end or before
        }
    }
    let Some((first, last)) = looks.first().zip(looks.last()) else {
        return match root.get("looks") {
            None => Ok(looks),
            Some(_) if has_other_seeds && is_the_file_s => Ok(looks),
            Some(_) => Err(root.impossible("looks", "there must be at least one look, at all pairs")),
        };
    };
    let message = if repetitions > 1 {
        "repetitions are there to count wrong verdicts: each is looked at once".to_string()
    } else if !looks.is_sorted_by(|one, next| one < next) {
        "each look comes after more pairs than the one before".into()
    } else if *first < FEWEST_PAIRS {
        format!("{first} pairs decide nothing: the first look comes after {FEWEST_PAIRS} or more")
    } else if *last != pairs {
        format!("the last look is at all pairs, and there are {pairs}: it can't be at {last}")
    } else {
        return Ok(looks);
    };
    Err(root.impossible("looks", message))
}

/// `vary`: keys of instance seeds that every arm has, in which arms agree, and that take every seed used.
pub(super) fn vary(
    root: &Section<'_>,
    arms: &[Arm],
    seeds: &[u64],
    tuning: Option<&Tuning>,
) -> Result<Vec<String>, ConfigError> {
    let vary: Vec<String> = root.value("vary")?.unwrap_or_default();
    for (index, key) in vary.iter().enumerate() {
        if vary[..index].contains(key) {
            return Err(root.impossible("vary", format!("`{}` is listed twice", shorten(key, 60))));
        }
        for arm in arms {
            let task = &arm.config.task.task;
            let declared: Vec<String> = task.instance_seeds().iter().map(|key| format!("task.{key}")).collect();
            let Some(name) = key.strip_prefix("task.").filter(|_| declared.contains(key)) else {
                let names = || declared.iter().map(String::as_str);
                let help = match (nearest(key, names()), declared.len()) {
                    (Some(near), _) => format!("did you mean `{near}`?"),
                    (None, 0) => format!("the task `{}` has no instances to vary", task.kind()),
                    (None, _) => format!("the task `{}` has {}", task.kind(), list(names())),
                };
                let value = shorten(key, 40);
                let problem = Problem::UnknownWord { key: "vary".into(), value, what: "instance seed".into() };
                return Err(Diagnostic { help: vec![help], ..root.at("vary", problem) }.into());
            };
            let value = |arm: &Arm| {
                let of_key = |(other, value)| (other == name).then_some(value);
                arm.config.task.task.parameters().into_iter().find_map(of_key)
            };
            if value(arm) != value(&arms[0]) {
                let message = format!("arms `{}` and `{}` differ in `{key}`: it varies alike", arms[0].name, arm.name);
                return Err(root.impossible("vary", message));
            }
            let used = seeds.iter().chain(tuning.iter().flat_map(|tuning| &tuning.seeds));
            if let Some(seed) = used.copied().find(|seed| task.instance(name, *seed).is_none()) {
                return Err(root.impossible("vary", format!("the task `{}` refuses `{key} = {seed}`", task.kind())));
            }
        }
    }
    Ok(vary)
}

/// `[check]`.
pub(super) fn check(
    root: &Section<'_>,
    arms: &[Arm],
    pairs: usize,
    repetitions: u64,
) -> Result<Option<Check>, ConfigError> {
    let Some((section, check)) = root.typed::<Check>("check")? else { return Ok(None) };
    if !(2..=limits::LONGER).contains(&check.steps) {
        let message = format!("steps = {}: how many times as long it is, 2 to {}", check.steps, limits::LONGER);
        return Err(section.impossible("steps", message));
    }
    if repetitions > 1 {
        return Err(root.impossible("check", "repetitions are there to count wrong verdicts, not to be checked"));
    }
    if check.pairs == 0 || check.pairs > pairs {
        return Err(section.impossible("pairs", format!("{} pairs: 1 to the {pairs} reported", check.pairs)));
    }
    for arm in arms {
        // The checks of a config: so many steps may be too many.
        let longer = check.config(arm.config.clone());
        Config::parse(&longer.to_toml(), "check").map_err(|error| {
            let problem = error.diagnostics().first().map(|diagnostic| diagnostic.problem.to_string());
            section.impossible("steps", format!("`{}`: {}", arm.name, problem.unwrap_or_default()))
        })?;
    }
    Ok(Some(check))
}
