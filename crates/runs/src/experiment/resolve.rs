//! From the text of an experiment file to a checked experiment.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use data::metrics::{self, METRICS, SplitMetric};

use super::{
    About, Arm, Experiment, MetricChoice, Published, Regime, SeedList, Tuning, USUAL_PAIRS,
    arms::{self, Base},
    plan, predict,
};
use crate::{
    config::Config,
    document::{ConfigError, Diagnostic, Document, KeyNode, KeyPlace, Problem, Section, Value, keys_of, shorten},
    limits,
    nearest::{list, nearest},
};

const KEYS: [&str; 19] = [
    "name",
    "base",
    "baseline",
    "regime",
    "seeds",
    "why_seeds",
    "repetitions",
    "sweep",
    "match_d_ff",
    "about",
    "metric",
    "tuning",
    "vary",
    "looks",
    "predict",
    "check",
    "published",
    "arms",
    "grid",
];

/// Overrides of an experiment, apart: those of its own keys, and those of every arm's config.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    pub own: Vec<String>,
    pub of_configs: Vec<String>,
}

/// Reads and checks everything.
pub(super) fn resolve(text: &str, path: &Path, overrides: &Overrides) -> Result<Experiment, ConfigError> {
    let origin = path.display().to_string();
    let document = Document { origin: &origin, text, overrides: &overrides.own, given: &overrides.own };
    let table = document.tree()?;
    let root = Section::root(document, &table);
    settable(&root, &overrides.own)?;
    if root.is_empty() {
        let help = vec!["an experiment needs at least `base`, `baseline`, `[metric]` and `[arms]` or `[grid]`".into()];
        return Err(Diagnostic { help, ..document.at(None, Problem::Empty) }.into());
    }
    root.refuse_unknown(&KEYS)?;

    let name = name(&root, path)?;
    let about = about(&root)?;
    let regime = root.value("regime")?.unwrap_or(Regime::Split);
    let mut metric = metric(&root)?;
    let base = Base::read(&root, path, &overrides.of_configs)?;
    let (mut arms, grid_key) = arms::read(&root, &base)?;
    let baseline = baseline(&root, &arms)?;
    if root.value("match_d_ff")?.unwrap_or(false) {
        arms::match_d_ff(&root, &mut arms, &baseline, regime)?;
    }
    let arms: Vec<Arm> = arms.into_iter().map(|draft| draft.arm).collect();

    applicable(&root, &mut metric, &arms)?;

    let repetitions = root.value("repetitions")?.unwrap_or(1);
    let (seeds, why_seeds) = seeds(&root, repetitions, &overrides.own)?;
    check_offsets(&root, &arms, &seeds, regime)?;
    let tuning = tuning(&root, &arms, &seeds)?;
    let sweep = sweep(&root, &arms, grid_key)?;
    let has_other_seeds = overrides.own.iter().any(|set| key_of(set) == "seeds");
    let looks = plan::looks(&root, seeds.len(), repetitions, has_other_seeds)?;
    let vary = plan::vary(&root, &arms, &seeds, tuning.as_ref())?;
    let check = plan::check(&root, &arms, seeds.len(), repetitions)?;
    let predict = predict::read(&root, &arms, &baseline, sweep.as_deref())?;
    Ok(Experiment {
        name,
        about,
        regime,
        metric,
        baseline,
        seeds,
        why_seeds,
        repetitions: repetitions as usize,
        sweep,
        tuning,
        vary,
        looks,
        predict,
        check,
        published: published(&root, &arms)?,
        arms,
    })
}

/// `+`, `=` and `,` are those of [`Variant`](super::Variant)'s names.
pub(super) fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '=' | ',')
}

/// The key of an override.
fn key_of(set: &str) -> &str {
    set.split_once('=').map_or(set, |(key, _)| key).trim()
}

/// Refuses overrides of what is the file's: its name and words, arms, and the prediction.
fn settable(root: &Section<'_>, overrides: &[String]) -> Result<(), ConfigError> {
    for (index, set) in overrides.iter().enumerate() {
        let key = key_of(set);
        let first = key.split('.').next().unwrap_or_default();
        if matches!(first, "name" | "about" | "base" | "arms" | "grid" | "predict") {
            let message = match first {
                "arms" | "grid" | "base" => {
                    "arms are the file's; `model.heads=4` and other keys of a config are set in all of them"
                }
                "predict" => "a prediction is made in the file, before the runs",
                _ => "it is the file's; a folder's name follows from what is set",
            };
            let problem = Problem::Impossible { key: shorten(key, 60), message: message.into() };
            return Err(root.document.at(Some(&KeyPlace::Override(index)), problem).into());
        }
    }
    Ok(())
}

fn name(root: &Section<'_>, path: &Path) -> Result<String, ConfigError> {
    let Some(name) = root.value::<String>("name")? else {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let name: String =
            stem.chars().map(|c| if is_name_character(c) { c } else { '-' }).take(limits::NAME).collect();
        let name = name.trim_start_matches(['.', '-']);
        return Ok(if name.is_empty() { "experiment".into() } else { name.into() });
    };
    if name.is_empty() || name.len() > limits::NAME || name.starts_with('.') || !name.chars().all(is_name_character) {
        let message = format!(
            "the name becomes a folder's: 1 to {} letters, digits and `_-.+=,`, not beginning with `.`",
            limits::NAME
        );
        return Err(root.impossible("name", message));
    }
    Ok(name)
}

fn about(root: &Section<'_>) -> Result<About, ConfigError> {
    let Some((section, about)) = root.typed::<About>("about")? else { return Ok(About::default()) };
    if about.minutes.is_some_and(|minutes| !(0.0..f64::INFINITY).contains(&minutes)) {
        return Err(section.impossible("minutes", "no runs take less than 0 minutes, or for ever"));
    }
    Ok(about)
}

fn metric(root: &Section<'_>) -> Result<MetricChoice, ConfigError> {
    let missing = || {
        let problem = Problem::MissingKey { key: "metric.margin".into() };
        let help = vec!["the smallest difference that matters, such as 0.02, is set before the runs".into()];
        ConfigError::from(Diagnostic { help, ..root.at("metric", problem) })
    };
    let section = root.section("metric")?.ok_or_else(missing)?;
    section.refuse_unknown(keys_of::<MetricChoice>())?;
    section.get("margin").ok_or_else(missing)?;
    let metric: MetricChoice = section.read(&[])?;
    let MetricChoice { name, margin, threshold, at: _, failure_difference, max_failure } = metric;
    let most = if name.kind.span().is_finite() { name.kind.span() } else { 1e9 };
    if !(0.0..=most).contains(&margin) {
        return Err(section.impossible("margin", format!("margin = {margin} is out of range: 0 to {most}")));
    }
    let threshold = threshold.or(name.kind.threshold);
    if let Some(threshold) = threshold.filter(|threshold| !(0.0..=most).contains(threshold)) {
        let message = format!("threshold = {threshold} is out of range: 0 to {most} for {}", name.words());
        return Err(section.impossible("threshold", message));
    }
    if let Some(distance) = failure_difference.filter(|distance| !(*distance > 0.0 && *distance <= most)) {
        let message = format!("failure_difference = {distance} is out of range: above 0, at most {most}");
        return Err(section.impossible("failure_difference", message));
    }
    if let Some(share) = max_failure.filter(|share| !(*share > 0.0 && *share < 1.0)) {
        let message = format!("max_failure = {share} is out of range: a share of pairs, above 0 and below 1");
        return Err(section.impossible("max_failure", message));
    }
    Ok(MetricChoice { threshold, ..metric })
}

/// `[published]`, whose numbers are of arms that there are.
fn published(root: &Section<'_>, arms: &[Arm]) -> Result<Option<Published>, ConfigError> {
    let Some((section, published)) = root.typed::<Published>("published")? else { return Ok(None) };
    let names = || arms.iter().map(|arm| arm.name.as_str());
    if let Some(unknown) = published.values.keys().find(|name| !names().any(|arm| arm == *name)) {
        let message = format!("there is no arm `{}`: the arms are {}", shorten(unknown, 40), list(names()));
        return Err(section.impossible("values", message));
    }
    match published.values.iter().find(|(_, value)| !value.is_finite()) {
        Some((name, value)) => Err(section.impossible("values", format!("`{name}` = {value} is no finite number"))),
        None => Ok(Some(published)),
    }
}

/// The metric that decides must be one that every arm's task has; where none is named it is the usual one of the task.
fn applicable(root: &Section<'_>, metric: &mut MetricChoice, arms: &[Arm]) -> Result<(), ConfigError> {
    let Some(section) = root.section("metric")? else { return Ok(()) };
    let Some(first) = arms.first() else { return Ok(()) };
    if section.get("name").is_none() {
        let usual = metrics::deciding(&first.config.task.task);
        if usual != metric.name.kind {
            metric.name = SplitMetric { kind: usual, ..metric.name };
            metric.threshold = if section.get("threshold").is_some() { metric.threshold } else { usual.threshold };
        }
    }
    let kind = metric.name.kind;
    match arms.iter().find(|arm| !kind.applies(&arm.config.task.task)) {
        None => Ok(()),
        Some(arm) => {
            let task = &arm.config.task.task;
            let there = METRICS.iter().filter(|kind| kind.applies(task)).map(|kind| kind.key);
            let message = format!(
                "a model of `{}` (arm `{}`) has no {}: there are {}",
                task.kind(),
                arm.name,
                kind.key,
                list(there)
            );
            Err(section.impossible("name", message))
        }
    }
}

fn baseline(root: &Section<'_>, arms: &[arms::Draft]) -> Result<String, ConfigError> {
    let names = || arms.iter().map(|draft| draft.arm.name.as_str());
    let Some(baseline) = root.value::<String>("baseline")? else {
        let problem = Problem::MissingKey { key: "baseline".into() };
        let help = vec![format!("the arm that all others are compared with, one of {}", list(names()))];
        return Err(Diagnostic { help, ..root.document.at(None, problem) }.into());
    };
    if names().any(|name| name == baseline) {
        return Ok(baseline);
    }
    let help = match nearest(&baseline, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the arms are {}", list(names())),
    };
    let value = shorten(&baseline, 40);
    let problem = Problem::UnknownWord { key: "baseline".into(), value, what: "arm".into() };
    Err(Diagnostic { help: vec![help], ..root.at("baseline", problem) }.into())
}

/// The seeds of a section, each once; `None` where it has none.
fn seed_list(section: &Section<'_>) -> Result<Option<Vec<u64>>, ConfigError> {
    section.value("seeds")?.map(|seeds| check_seeds(section, seeds)).transpose()
}

fn check_seeds(section: &Section<'_>, seeds: SeedList) -> Result<Vec<u64>, ConfigError> {
    let count = seeds.len();
    if count > limits::SEEDS {
        return Err(section.impossible("seeds", format!("{count} seeds are too many: at most {}", limits::SEEDS)));
    }
    let seeds: Vec<u64> = seeds.into();
    let mut seen = BTreeSet::new();
    if let Some(twice) = seeds.iter().find(|seed| !seen.insert(**seed)) {
        return Err(section.impossible("seeds", format!("seed {twice} is listed twice: its runs would count twice")));
    }
    if seeds.is_empty() {
        return Err(section.impossible("seeds", "there must be at least one seed"));
    }
    Ok(seeds)
}

fn seeds(
    root: &Section<'_>,
    repetitions: u64,
    overrides: &[String],
) -> Result<(Vec<u64>, Option<String>), ConfigError> {
    let seeds = seed_list(root)?.unwrap_or_else(|| (0..USUAL_PAIRS as u64).collect());
    let is_set = overrides.iter().any(|set| key_of(set) == "seeds");
    let why = root.value::<String>("why_seeds")?.filter(|why| !why.trim().is_empty());
    let why = why.or_else(|| is_set.then(|| "as many as the command line says".into()));
    if repetitions == 0 || !(seeds.len() as u64).is_multiple_of(repetitions) {
        let message = format!("{} seeds can't be cut into {repetitions} repetitions of equal size", seeds.len());
        return Err(root.impossible("repetitions", message));
    }
    let pairs = seeds.len() / repetitions as usize;
    let why = why.filter(|why| pairs < USUAL_PAIRS || root.get("why_seeds").is_some() && !why.is_empty());
    if pairs < USUAL_PAIRS && why.is_none() {
        let message = format!("{pairs} pairs are fewer than {USUAL_PAIRS}: say why in `why_seeds = \"...\"`");
        return Err(root.impossible("seeds", message));
    }
    Ok((seeds, why))
}

/// Arms of other seeds must have none of the others' and can't be matched.
fn check_offsets(root: &Section<'_>, arms: &[Arm], seeds: &[u64], regime: Regime) -> Result<(), ConfigError> {
    let mut owners: BTreeMap<u64, &Arm> = BTreeMap::new();
    for arm in arms {
        for seed in seeds {
            let Some(own) = seed.checked_add(arm.seed_offset).filter(|own| *own <= limits::SEED) else {
                let message = format!("seed {seed} of `{}` is out of range: 0 to {}", arm.name, limits::SEED);
                return Err(root.impossible(if arm.seed_offset > 0 { "arms" } else { "seeds" }, message));
            };
            let owner = owners.entry(own).or_insert(arm);
            if owner.seed_offset != arm.seed_offset {
                let message = format!(
                    "with `seed_offset`, seed {own} belongs to `{}` in one pair and to `{}` in another: arms must have \
                     the same seeds or none in common",
                    owner.name, arm.name
                );
                return Err(root.impossible("arms", message));
            }
        }
    }
    let offset = arms.iter().find(|arm| arm.seed_offset != arms[0].seed_offset);
    match offset.filter(|_| regime != Regime::Free) {
        None => Ok(()),
        Some(arm) => {
            let message = format!(
                "`{}` and `{}` have different seeds, so other data and weights: that is regime = \"free\"",
                arms[0].name, arm.name
            );
            Err(root.impossible(if root.get("regime").is_some() { "regime" } else { "arms" }, message))
        }
    }
}

fn tuning(root: &Section<'_>, arms: &[Arm], seeds: &[u64]) -> Result<Option<Tuning>, ConfigError> {
    let Some((section, tuning)) = root.typed::<Tuning>("tuning")? else { return Ok(None) };
    let Tuning { mut lr, seeds: tuning_seeds } = tuning;
    if lr.is_empty() || lr.len() > limits::RATES {
        let message = format!("{} learning rates: 1 to {} can be tried", lr.len(), limits::RATES);
        return Err(section.impossible("lr", message));
    }
    for (index, rate) in lr.iter().enumerate() {
        if lr[..index].contains(rate) {
            return Err(section.impossible("lr", format!("{rate} is listed twice")));
        }
        for arm in arms {
            // The checks of a config, min_lr and all.
            let mut config = arm.config.clone();
            config.train.lr = *rate;
            Config::parse(&config.to_toml(), "tuned").map_err(|error| {
                let message = error.diagnostics().first().map(|diagnostic| diagnostic.problem.to_string());
                let problem = Problem::Impossible { key: "tuning.lr".into(), message: message.unwrap_or_default() };
                let place = match section.get("lr") {
                    Some(KeyNode { value: Value::List(items), .. }) => items.get(index).map(|item| &item.place),
                    _ => None,
                };
                ConfigError::from(root.document.at(place, problem))
            })?;
        }
    }
    lr.sort_by(f64::total_cmp);
    let tuning_seeds = check_seeds(&section, SeedList::List(tuning_seeds))?;

    let offsets: BTreeSet<u64> = arms.iter().map(|arm| arm.seed_offset).collect();
    let reported: BTreeSet<u64> =
        offsets.iter().flat_map(|offset| seeds.iter().map(move |seed| seed.saturating_add(*offset))).collect();
    let of_tuning = |seed: &u64| offsets.iter().map(move |offset| seed.saturating_add(*offset)).collect::<Vec<_>>();
    let shared: BTreeSet<u64> =
        tuning_seeds.iter().flat_map(of_tuning).filter(|seed| reported.contains(seed)).collect();
    if !shared.is_empty() {
        let names: Vec<String> = shared.iter().take(12).map(u64::to_string).collect();
        let (of, are) = if shared.len() == 1 { ("seed", "is") } else { ("seeds", "are") };
        let message = format!(
            "{of} {} {are} also used by the reported runs: learning rates are chosen on seeds of their own",
            list(names.iter().map(String::as_str))
        );
        return Err(section.impossible("seeds", message));
    }
    Ok(Some(Tuning { lr, seeds: tuning_seeds }))
}

fn sweep(root: &Section<'_>, arms: &[Arm], grid_key: Option<String>) -> Result<Option<String>, ConfigError> {
    let given = root.value::<String>("sweep")?;
    let is_numeric = |key: &str| arms.iter().all(|arm| arms::number_at(&arm.config, key).is_some());
    match given {
        Some(key) if is_numeric(&key) => Ok(Some(key)),
        Some(key) => Err(root.impossible("sweep", format!("`{}` isn't a number in every arm", shorten(&key, 60)))),
        None => Ok(grid_key.filter(|key| is_numeric(key))),
    }
}
