//! From the text of an experiment file to a checked experiment.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use toml::de::{DeTable, DeValue};

use super::{
    About, Arm, Experiment, MetricChoice, MetricName, Regime, Tuning, USUAL_PAIRS,
    arms::{self, Base},
    reader::{Section, Text, number, whole},
};
use crate::{
    config::{Config, ConfigError, Diagnostic, Problem},
    limits,
    nearest::{list, nearest},
};

const KEYS: [&str; 14] = [
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
    "arms",
    "grid",
];
/// Reads and checks everything.
pub(super) fn resolve(text: &str, path: &Path) -> Result<Experiment, ConfigError> {
    let origin = path.display().to_string();
    let text = Text { origin: &origin, text };
    let table = text.parse()?;
    let root = Section { text, path: "", table: &table };
    if table.is_empty() {
        let help = vec!["an experiment needs at least `base`, `baseline`, `[metric]` and `[arms]` or `[grid]`".into()];
        return Err(Diagnostic { help, ..text.whole(Problem::Empty) }.into());
    }
    root.refuse_unknown(&KEYS)?;

    let name = name(&root, path)?;
    let about = about(&root)?;
    let regime = root.one_of("regime", &[Regime::Split, Regime::Params, Regime::Free].map(|r| (r.name(), r)))?;
    let regime = regime.unwrap_or(Regime::Split);
    let metric = metric(&root)?;
    let base = Base::read(&root, path)?;
    let (mut arms, grid_key) = arms::read(&root, &base)?;
    let baseline = baseline(&root, &arms)?;
    if root.read("match_d_ff", "true or false", DeValue::as_bool)?.unwrap_or(false) {
        arms::match_d_ff(&root, &mut arms, &baseline, regime)?;
    }
    let arms: Vec<Arm> = arms.into_iter().map(|draft| draft.arm).collect();

    let repetitions = root.whole("repetitions")?.unwrap_or(1);
    let (seeds, why_seeds) = seeds(&root, repetitions)?;
    check_offsets(&root, &arms, &seeds, regime)?;
    let tuning = tuning(&root, &base, &arms, &seeds)?;
    let sweep = sweep(&root, &arms, grid_key)?;
    let repetitions = repetitions as usize;
    Ok(Experiment { name, about, regime, metric, baseline, seeds, why_seeds, repetitions, sweep, tuning, arms })
}

/// A section, and the whole of its keys checked.
fn section<'a>(root: &Section<'a>, key: &'a str, known: &[&str]) -> Result<Option<Section<'a>>, ConfigError> {
    let table = root.read(key, "a section", |value| match value {
        DeValue::Table(table) => Some(table),
        _ => None,
    })?;
    let section = table.map(|table: &'a DeTable<'a>| Section { text: root.text, path: key, table });
    section.iter().try_for_each(|section| section.refuse_unknown(known))?;
    Ok(section)
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn name(root: &Section<'_>, path: &Path) -> Result<String, ConfigError> {
    let Some(name) = root.words("name")? else {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let name: String =
            stem.chars().map(|c| if is_name_character(c) { c } else { '-' }).take(limits::NAME).collect();
        let name = name.trim_start_matches(['.', '-']);
        return Ok(if name.is_empty() { "experiment".into() } else { name.into() });
    };
    if name.is_empty() || name.len() > limits::NAME || name.starts_with('.') || !name.chars().all(is_name_character) {
        let message = format!(
            "the name becomes a folder's: 1 to {} letters, digits, `_`, `-` and `.`, not beginning with `.`",
            limits::NAME
        );
        return Err(root.impossible("name", message));
    }
    Ok(name)
}

fn about(root: &Section<'_>) -> Result<About, ConfigError> {
    let Some(about) = section(root, "about", &["question", "prediction", "expected", "minutes", "result"])? else {
        return Ok(About::default());
    };
    let minutes = about.number("minutes")?;
    if minutes.is_some_and(|minutes| minutes < 0.0) {
        return Err(about.impossible("minutes", "no runs take less than 0 minutes"));
    }
    Ok(About {
        question: about.words("question")?,
        prediction: about.words("prediction")?,
        expected: about.words("expected")?,
        minutes,
        result: about.words("result")?,
    })
}

fn metric(root: &Section<'_>) -> Result<MetricChoice, ConfigError> {
    let missing = |at: Option<&Section<'_>>| {
        let problem = Problem::MissingKey { key: "metric.margin".into() };
        let help = vec!["the smallest difference that matters, such as 0.02, is set before the runs".into()];
        let at = at.map_or_else(|| root.text.whole(problem.clone()), |_| root.at("metric", problem.clone()));
        ConfigError::from(Diagnostic { help, ..at })
    };
    let Some(section) = section(root, "metric", &["name", "margin", "threshold"])? else { return Err(missing(None)) };
    let name = section.one_of("name", &MetricName::ALL.map(|name| (name.name(), name)))?;
    let name = name.unwrap_or(MetricName::TestAccuracy);
    let margin = section.number("margin")?.ok_or_else(|| missing(Some(&section)))?;
    let most = if name.is_accuracy() { 1.0 } else { 1e9 };
    if !(0.0..=most).contains(&margin) {
        return Err(section.impossible("margin", format!("margin = {margin} is out of range: 0 to {most}")));
    }
    let threshold = section.number("threshold")?.or(name.is_accuracy().then_some(0.95));
    if let Some(threshold) = threshold.filter(|threshold| !(0.0..=most).contains(threshold)) {
        let message = format!("threshold = {threshold} is out of range: 0 to {most} for {}", name.words());
        return Err(section.impossible("threshold", message));
    }
    Ok(MetricChoice { name, margin, threshold })
}

fn baseline(root: &Section<'_>, arms: &[arms::Draft]) -> Result<String, ConfigError> {
    let names = || arms.iter().map(|draft| draft.arm.name.as_str());
    let Some(baseline) = root.words("baseline")? else {
        let problem = Problem::MissingKey { key: "baseline".into() };
        let help = vec![format!("the arm that all others are compared with, one of {}", list(names()))];
        return Err(Diagnostic { help, ..root.text.whole(problem) }.into());
    };
    if names().any(|name| name == baseline) {
        return Ok(baseline);
    }
    let help = match nearest(&baseline, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the arms are {}", list(names())),
    };
    let value = baseline.chars().filter(|c| !c.is_control()).take(40).collect();
    let problem = Problem::UnknownWord { key: "baseline".into(), value, what: "arm".into() };
    Err(Diagnostic { help: vec![help], ..root.at("baseline", problem) }.into())
}

/// A count (0, 1, ...) or a list of seeds, each once.
fn seed_list(section: &Section<'_>, expected: &str) -> Result<Option<Vec<u64>>, ConfigError> {
    let Some((_, value)) = section.get("seeds") else { return Ok(None) };
    let seeds = match value.get_ref() {
        DeValue::Array(items) if items.len() as u64 <= limits::SEEDS => {
            let mut seeds = vec![];
            for item in items.iter() {
                seeds.push(whole(item.get_ref()).ok_or_else(|| section.wrong_type("seeds", item, expected))?);
            }
            seeds
        }
        DeValue::Array(items) => {
            return Err(
                section.impossible("seeds", format!("{} seeds are too many: at most {}", items.len(), limits::SEEDS))
            );
        }
        other => match whole(other) {
            Some(count) if count <= limits::SEEDS => (0..count).collect(),
            Some(count) => {
                return Err(
                    section.impossible("seeds", format!("{count} seeds are too many: at most {}", limits::SEEDS))
                );
            }
            None => return Err(section.wrong_type("seeds", value, expected)),
        },
    };
    let mut seen = BTreeSet::new();
    if let Some(twice) = seeds.iter().find(|seed| !seen.insert(**seed)) {
        return Err(section.impossible("seeds", format!("seed {twice} is listed twice: its runs would count twice")));
    }
    if seeds.is_empty() {
        return Err(section.impossible("seeds", "there must be at least one seed"));
    }
    Ok(Some(seeds))
}

fn seeds(root: &Section<'_>, repetitions: u64) -> Result<(Vec<u64>, Option<String>), ConfigError> {
    let seeds = seed_list(root, "a number of seeds or a list of them, each 0 or more")?;
    let seeds = seeds.unwrap_or_else(|| (0..USUAL_PAIRS as u64).collect());
    let why = root.words("why_seeds")?.filter(|why| !why.trim().is_empty());
    if repetitions == 0 || !(seeds.len() as u64).is_multiple_of(repetitions) {
        let message = format!("{} seeds can't be cut into {repetitions} repetitions of equal size", seeds.len());
        return Err(root.impossible("repetitions", message));
    }
    let pairs = seeds.len() / repetitions as usize;
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

fn tuning(root: &Section<'_>, base: &Base<'_>, arms: &[Arm], seeds: &[u64]) -> Result<Option<Tuning>, ConfigError> {
    let Some(section) = section(root, "tuning", &["lr", "seeds"])? else { return Ok(None) };
    let expected = "a list of learning rates";
    let missing = |key: &str| {
        let problem = Problem::MissingKey { key: format!("tuning.{key}") };
        ConfigError::from(root.at("tuning", problem))
    };
    let Some((_, value)) = section.get("lr") else { return Err(missing("lr")) };
    let DeValue::Array(items) = value.get_ref() else { return Err(section.wrong_type("lr", value, expected)) };
    if items.is_empty() || items.len() > limits::RATES {
        return Err(
            section.impossible("lr", format!("{} learning rates: 1 to {} can be tried", items.len(), limits::RATES))
        );
    }
    let mut lr: Vec<f64> = vec![];
    for item in items.iter() {
        let rate = number(item.get_ref()).ok_or_else(|| section.wrong_type("lr", item, "a number"))?;
        if lr.contains(&rate) {
            return Err(section.impossible("lr", format!("{rate} is listed twice")));
        }
        for arm in arms {
            // The checks of a config, min_lr and all.
            let mut config = arm.config.clone();
            config.train.lr = rate;
            Config::parse(&config.to_toml(), "tuned").map_err(|error| {
                let message = error.diagnostics().first().map(|diagnostic| diagnostic.problem.to_string());
                base.text().impossible_at(item.span(), "tuning.lr", message.unwrap_or_default())
            })?;
        }
        lr.push(rate);
    }
    lr.sort_by(f64::total_cmp);

    let tuning_seeds = seed_list(&section, "a list of seeds, each 0 or more")?.ok_or_else(|| missing("seeds"))?;
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
    let given = root.words("sweep")?;
    let is_numeric = |key: &str| arms.iter().all(|arm| arms::number_at(&arm.config, key).is_some());
    match given {
        Some(key) if is_numeric(&key) => Ok(Some(key)),
        Some(key) => {
            let short: String = key.chars().filter(|c| !c.is_control()).take(60).collect();
            Err(root.impossible("sweep", format!("`{short}` isn't a number in every arm")))
        }
        None => Ok(grid_key.filter(|key| is_numeric(key))),
    }
}
