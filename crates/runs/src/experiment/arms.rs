//! The arms: differences from a base config, or a grid of values, each resolved by the config's own checks.

use std::{
    ops::Range,
    path::{Component, Path, PathBuf},
};

use super::{Arm, Regime};
use crate::{
    config::Config,
    differences,
    document::{ConfigError, Diagnostic, Document, KeyNode, KeyPlace, Leaf, Problem, Section, Shown, Value, shorten},
    limits, sizes,
};

/// Keys of an arm that aren't a config's.
const OWN_KEYS: [&str; 3] = ["config", "label", "seed_offset"];

/// What all arms start from.
pub(super) struct Base<'a> {
    document: Document<'a>,
    /// The experiment file's folder.
    folder: &'a Path,
    /// A config file, and where it was named.
    file: Option<(PathBuf, Range<usize>)>,
    leaves: Vec<Leaf>,
    /// Set in every arm, over all else.
    last: &'a [String],
}

/// An arm, and the place that made it.
pub(super) struct Draft {
    pub arm: Arm,
    span: Range<usize>,
    overrides: Vec<Leaf>,
}

/// A value that can't be, at a span.
fn impossible_at(document: Document<'_>, span: Range<usize>, key: &str, message: String) -> ConfigError {
    document.at_span(span, Problem::Impossible { key: key.into(), message }).into()
}

/// The span of a key, or of its value, in the file; there are no overrides here.
fn key_span(node: &KeyNode) -> Range<usize> {
    match &node.place {
        KeyPlace::File { key, .. } => key.clone(),
        KeyPlace::Override(_) => 0..0,
    }
}

fn value_span(node: &KeyNode) -> Range<usize> {
    match &node.place {
        KeyPlace::File { value, .. } => value.clone(),
        KeyPlace::Override(_) => 0..0,
    }
}

impl<'a> Base<'a> {
    /// `base = "..."`, or `[base]` with `config = "..."` and config keys.
    pub fn read(root: &Section<'a>, path: &'a Path, last: &'a [String]) -> Result<Self, ConfigError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut base = Self { document: root.document, folder, file: None, leaves: vec![], last };
        let Some(node) = root.get("base") else { return Ok(base) };
        match (&node.value, root.inner("base", node)) {
            (Value::Text(file), _) => base.file = Some((base.beside(file), value_span(node))),
            (_, Some(section)) => {
                refuse_names(&section, &["config"])?;
                base.file = base.config(&section)?;
                base.leaves = section.leaves(&["config"])?;
            }
            _ => return Err(root.wrong_type("base", node, "a config file's path or a section")),
        }
        Ok(base)
    }

    fn config(&self, section: &Section<'_>) -> Result<Option<(PathBuf, Range<usize>)>, ConfigError> {
        let Some(file) = section.value::<String>("config")? else { return Ok(None) };
        Ok(section.get("config").map(|node| (self.beside(&file), value_span(node))))
    }

    /// A path relative to the experiment file, without `a/../`.
    fn beside(&self, file: &str) -> PathBuf {
        let mut path = PathBuf::new();
        for part in self.folder.join(file).components() {
            match (part, path.components().next_back()) {
                (Component::ParentDir, Some(Component::Normal(_))) => drop(path.pop()),
                _ => path.push(part),
            }
        }
        path
    }

    /// The config of an arm, with errors at their places in the experiment file.
    fn resolve(
        &self,
        name: &str,
        span: &Range<usize>,
        file: Option<&(PathBuf, Range<usize>)>,
        leaves: &[Leaf],
    ) -> Result<Config, ConfigError> {
        let all = || self.leaves.iter().chain(leaves);
        let own = [Leaf { key: "name".into(), value: format!("{name:?}"), span: span.clone() }];
        let seed = Leaf { key: "seed".into(), value: "0".into(), span: span.clone() };
        let overrides = all().chain(&own).chain([&seed]).map(|leaf| format!("{}={}", leaf.key, leaf.value));
        let overrides: Vec<String> = overrides.chain(self.last.iter().cloned()).collect();
        let file = file.or(self.file.as_ref());
        let config = match file {
            Some((path, _)) => Config::load(path, &overrides),
            // A text that is not empty but says nothing: everything comes from the overrides.
            None => Config::parse_with("#", self.document.origin, &overrides),
        };
        config.map_err(|error| {
            let relocate = |diagnostic: &Diagnostic| {
                let help = diagnostic.help.clone();
                let problem = diagnostic.problem.clone();
                match (&diagnostic.place, file) {
                    (Shown::Override(set), _) if self.last.iter().any(|last| shorten(last, 100) == *set) => {
                        diagnostic.clone()
                    }
                    (Shown::Override(set), _) => {
                        let at = all().chain(&own).find(|leaf| format!("{}={}", leaf.key, leaf.value) == *set);
                        let span = at.map_or_else(|| span.clone(), |leaf| leaf.span.clone());
                        Diagnostic { help, ..self.document.at_span(span, problem) }
                    }
                    (Shown::File, Some((path, span))) => {
                        let message = format!("{}: {problem}", path.display());
                        let problem = Problem::Impossible { key: "config".into(), message };
                        Diagnostic { help, ..self.document.at_span(span.clone(), problem) }
                    }
                    (Shown::File, None) => {
                        let mut help = help;
                        help.push("or name a config file: `base = \"../configs/h8.toml\"`".into());
                        Diagnostic { help, ..self.document.at_span(span.clone(), problem) }
                    }
                    (Shown::Excerpt(_), _) => diagnostic.clone(),
                }
            };
            ConfigError::new(error.diagnostics().iter().map(relocate).collect())
        })
    }
}

/// All arms, and the first key of the grid.
pub(super) fn read<'a>(root: &Section<'a>, base: &Base<'a>) -> Result<(Vec<Draft>, Option<String>), ConfigError> {
    let mut drafts = vec![];
    let mut grid_key = None;
    if let Some(grid) = root.section("grid")? {
        let axes = axes(&grid)?;
        grid_key = axes.first().map(|axis| axis.0.clone());
        for leaves in product(&grid, &axes)? {
            let name: Vec<String> = leaves.iter().map(short_name).collect();
            let span = leaves.first().map_or(0..0, |leaf| leaf.span.clone());
            let config = base.resolve(&name.join("-"), &span, None, &leaves)?;
            let arm = Arm { name: name.join("-"), label: String::new(), seed_offset: 0, config };
            drafts.push(Draft { arm, span, overrides: leaves });
        }
    }
    if let Some(arms) = root.section("arms")? {
        for (name, node) in arms.in_order() {
            let Some(section) = arms.inner(name, node) else {
                return Err(arms.wrong_type(name, node, "a section, such as `[arms.h1]`"));
            };
            let span = key_span(node);
            refuse_names(&section, &OWN_KEYS)?;
            let leaves = section.leaves(&OWN_KEYS)?;
            let file = base.config(&section)?;
            let config = base.resolve(name, &span, file.as_ref(), &leaves)?;
            let label = section.value("label")?.unwrap_or_default();
            let seed_offset = section.value("seed_offset")?.unwrap_or_default();
            drafts.push(Draft { arm: Arm { name: name.into(), label, seed_offset, config }, span, overrides: leaves });
        }
    }
    if drafts.len() < 2 || drafts.len() > limits::ARMS {
        let message = format!(
            "a comparison has 2 to {} arms, in `[arms.NAME]` or `[grid]`; here there are {}",
            limits::ARMS,
            drafts.len()
        );
        let problem = Problem::Impossible { key: "arms".into(), message };
        return Err(if root.get("arms").is_some() { root.at("arms", problem) } else { root.at("grid", problem) }.into());
    }
    for (index, draft) in drafts.iter().enumerate() {
        if drafts[..index].iter().any(|other| other.arm.name == draft.arm.name) {
            let message = format!("there are two arms `{}`", draft.arm.name);
            return Err(impossible_at(root.document, draft.span.clone(), "arms", message));
        }
    }
    let overridden = |draft: &Draft, key: &str| draft.overrides.iter().any(|leaf| leaf.key == key);
    for set in base.last {
        let key = set.split_once('=').map_or(set.as_str(), |(key, _)| key).trim();
        if let Some(draft) = drafts.iter().find(|draft| overridden(draft, key)) {
            let message =
                format!("`{set}` can't be set in all arms: `{}` has a value of its own there", draft.arm.name);
            return Err(impossible_at(root.document, draft.span.clone(), key, message));
        }
    }
    label(&mut drafts);
    for (index, draft) in drafts.iter().enumerate() {
        if let Some(other) = drafts[..index].iter().find(|other| other.arm.label == draft.arm.label) {
            let message = format!(
                "arms `{}` and `{}` are both labelled \"{}\": in results nobody could tell them apart",
                other.arm.name, draft.arm.name, draft.arm.label
            );
            return Err(impossible_at(root.document, draft.span.clone(), "label", message));
        }
    }
    Ok((drafts, grid_key))
}

/// An arm has no name or seed of its own.
fn refuse_names(section: &Section<'_>, own: &[&str]) -> Result<(), ConfigError> {
    let known = ["task", "model", "train", "backend", "name", "seed"];
    section.refuse_unknown(&[own, &known].concat())?;
    if section.get("name").is_some() {
        return Err(section.impossible("name", "an arm's name is the one in `[arms.NAME]`; `label` is for reading"));
    }
    if section.get("seed").is_some() {
        return Err(section.impossible("seed", "seeds are the experiment's: `seeds = ...` at the top"));
    }
    Ok(())
}

type Axis = (String, Range<usize>, Vec<String>);

/// The grid's keys with the values of each, in TOML.
fn axes(grid: &Section<'_>) -> Result<Vec<Axis>, ConfigError> {
    let mut axes: Vec<Axis> = vec![];
    for (key, node) in grid.in_order() {
        let Value::List(items) = &node.value else {
            return Err(grid.wrong_type(key, node, "a list of values, such as `\"model.heads\" = [1, 8]`"));
        };
        let is_bare = key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if !is_bare || matches!(key, "name" | "seed") || items.is_empty() {
            let message = "a grid has a config's keys in quotes, such as `\"model.heads\"`, each with its values";
            return Err(grid.impossible(key, message));
        }
        let texts = items.iter().map(|item| grid.document.text.get(value_span(item)).unwrap_or_default().to_string());
        axes.push((key.into(), key_span(node), texts.collect()));
    }
    Ok(axes)
}

/// Every combination, the last key varying fastest.
fn product(grid: &Section<'_>, axes: &[Axis]) -> Result<Vec<Vec<Leaf>>, ConfigError> {
    let arms = axes.iter().fold(1usize, |arms, (_, _, values)| arms.saturating_mul(values.len()));
    if arms > limits::ARMS {
        let key = axes.last().map_or("", |axis| &axis.0);
        return Err(grid.impossible(key, format!("the grid makes {arms} arms; at most {} are compared", limits::ARMS)));
    }
    let mut combinations: Vec<Vec<Leaf>> = vec![vec![]];
    for (key, span, values) in axes {
        let extend = |leaves: Vec<Leaf>| {
            values.iter().map(move |value| {
                let leaf = Leaf { key: key.clone(), value: value.clone(), span: span.clone() };
                leaves.iter().cloned().chain([leaf]).collect::<Vec<Leaf>>()
            })
        };
        combinations = combinations.into_iter().flat_map(extend).collect();
    }
    Ok(if axes.is_empty() { vec![] } else { combinations })
}

/// `h8` for `model.heads = 8`.
fn short_name(leaf: &Leaf) -> String {
    let last = leaf.key.rsplit('.').next().unwrap_or_default();
    let prefix = match last {
        "heads" => "h",
        "kv_heads" => "kv",
        "d_model" => "d",
        "d_head" => "k",
        "layers" => "l",
        other => other,
    };
    let value: String =
        leaf.value.trim_matches(['"', '\'']).chars().filter(|c| *c != '_' || last == "positions").collect();
    let plain: String = value.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    let between = if plain.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "-" };
    format!("{prefix}{between}{plain}").chars().take(40).collect()
}

/// Labels for the arms without one: "8 heads" where that tells all of them apart.
fn label(drafts: &mut [Draft]) {
    let explained = ["name", "model.heads", "model.d_ff", "model.d_head"];
    let first = drafts[0].arm.config.clone();
    let mut heads: Vec<usize> = drafts.iter().map(|draft| draft.arm.config.model.heads).collect();
    heads.sort_unstable();
    heads.dedup();
    let by_heads = heads.len() == drafts.len()
        && drafts.iter().all(|draft| {
            let differing = differences::between(&first, &draft.arm.config);
            differing.iter().all(|difference| explained.contains(&difference.key.as_str()))
        });
    for Draft { arm, .. } in drafts.iter_mut().filter(|draft| draft.arm.label.trim().is_empty()) {
        arm.label = match arm.config.model.heads {
            1 if by_heads => "1 head".into(),
            heads if by_heads => format!("{heads} heads"),
            _ => arm.name.clone(),
        };
    }
}

/// Gives every arm the `model.d_ff` that brings its parameters nearest to the baseline's.
pub(super) fn match_d_ff(
    root: &Section<'_>,
    drafts: &mut [Draft],
    baseline: &str,
    regime: Regime,
) -> Result<(), ConfigError> {
    if regime != Regime::Params {
        return Err(root.impossible("match_d_ff", "it belongs to regime = \"params\""));
    }
    let baseline = drafts.iter().find(|draft| draft.arm.name == baseline).map(|draft| draft.arm.config.clone());
    let Some(baseline) = baseline else { return Ok(()) };
    let target = sizes::parameters(&baseline);
    for draft in drafts.iter_mut().filter(|draft| draft.arm.config.name != baseline.name) {
        if let Some(leaf) = draft.overrides.iter().find(|leaf| leaf.key == "model.d_ff") {
            let message = "with match_d_ff = true the arms' d_ff is computed".into();
            return Err(impossible_at(root.document, leaf.span.clone(), "model.d_ff", message));
        }
        let config = &mut draft.arm.config;
        let message = format!("no d_ff brings `{}` near the {target} parameters of `{}`", config.name, baseline.name);
        let refused = || impossible_at(root.document, draft.span.clone(), "match_d_ff", message.clone());
        config.model.d_ff = Some(sizes::nearest_d_ff(config, target).ok_or_else(refused)?);
        // The checks of a config, memory and all.
        Config::parse(&config.to_toml(), "matched").map_err(|_| refused())?;
    }
    Ok(())
}

/// The number that a resolved config has at a key such as `model.heads`, defaults that follow from others included.
pub(super) fn number_at(config: &Config, key: &str) -> Option<f64> {
    match key {
        "model.d_head" => return Some(config.model.d_head() as f64),
        "model.kv_heads" => return Some(config.model.kv_heads() as f64),
        "model.d_ff" => return Some(config.model.d_ff() as f64),
        _ => {}
    }
    let table: toml::Table = config.to_toml().parse().ok()?;
    let mut value = &toml::Value::Table(table);
    for part in key.split('.') {
        value = value.get(part)?;
    }
    value.as_float().or(value.as_integer().map(|integer| integer as f64))
}
