//! What was predicted, in a form that the results can be held against.

use std::collections::BTreeMap;

use super::{Arm, arms};
use crate::{
    config::Config,
    document::{ConfigError, Diagnostic, KeyNode, KeyPlace, Problem, Section, Value, leaves, shorten},
    nearest::{list, nearest},
};

/// One prediction, made before the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// What is claimed.
    pub claim: Claim,
    /// Where: full config keys such as `model.layers`, each with the value in TOML that the arms spoken of have there;
    /// empty where it is all of them. In the file `where = { layers = 1 }`.
    pub level: BTreeMap<String, String>,
}

/// What a prediction claims.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// This arm is better than the baseline; where it is the baseline itself, of two arms, it is better than the other.
    Better {
        /// Its name.
        arm: String,
    },
    /// An arm, or every one, is equivalent to the baseline.
    Equivalent {
        /// Its name; `None` for every one.
        arm: Option<String>,
    },
    /// This is the smallest value of the sweep that is enough.
    Sufficient {
        /// A value that is tried.
        value: f64,
    },
}

impl Predicted {
    /// Whether the prediction speaks of this arm's config.
    pub fn is_about(&self, config: &Config) -> bool {
        let own = leaves(&config.to_toml());
        self.level.iter().all(|(key, value)| own.iter().any(|(other, found)| other == key && is_same(value, found)))
    }
}

const KEYS: [&str; 4] = ["better", "equivalent", "sufficient", "where"];

/// `[predict]`, or several `[[predict]]`.
pub(super) fn read(
    root: &Section<'_>,
    arms: &[Arm],
    baseline: &str,
    sweep: Option<&str>,
) -> Result<Vec<Predicted>, ConfigError> {
    let Some(node) = root.get("predict") else { return Ok(vec![]) };
    let nodes: Vec<&KeyNode> = match &node.value {
        Value::List(items) => items.iter().collect(),
        _ => vec![node],
    };
    let one = |node: &KeyNode| {
        let section = root.inner("predict", node);
        let section =
            section.ok_or_else(|| root.wrong_type("predict", node, "a section, such as `better = \"h8\"` in it"))?;
        predicted(&section, arms, baseline, sweep)
    };
    nodes.into_iter().map(one).collect()
}

fn predicted(
    section: &Section<'_>,
    arms: &[Arm],
    baseline: &str,
    sweep: Option<&str>,
) -> Result<Predicted, ConfigError> {
    section.refuse_unknown(&KEYS)?;
    let claims: Vec<&str> = section.keys().filter(|key| *key != "where").collect();
    let [claim] = claims[..] else {
        let message = "a prediction says one thing: `better`, `equivalent` or `sufficient`; several are \
                       `[[predict]]` each";
        return Err(section.impossible(claims.get(1).copied().unwrap_or_default(), message));
    };
    let level = level(section, arms, sweep)?;
    let predicted = |claim| Predicted { claim, level: level.clone() };
    let everywhere = predicted(Claim::Equivalent { arm: None });
    let about: Vec<&Arm> = arms.iter().filter(|arm| everywhere.is_about(&arm.config)).collect();
    if about.is_empty() {
        return Err(section.impossible("where", "no arm is so"));
    }
    let named = |key: &str| -> Result<String, ConfigError> {
        let name = section.value::<String>(key)?.unwrap_or_default();
        if about.iter().any(|arm| arm.name == name) {
            return Ok(name);
        }
        if arms.iter().any(|arm| arm.name == name) {
            return Err(section.impossible(key, format!("the arm `{name}` is not where the prediction says")));
        }
        let names = || about.iter().map(|arm| arm.name.as_str());
        let help = match nearest(&name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the arms are {}", list(names())),
        };
        let problem = Problem::UnknownWord { key: section.full(key), value: shorten(&name, 40), what: "arm".into() };
        Err(Diagnostic { help: vec![help], ..section.at(key, problem) }.into())
    };
    let claim = match claim {
        "better" => {
            let arm = named("better")?;
            if arm == baseline && arms.len() > 2 {
                let message = format!(
                    "`{arm}` is the baseline, and there are several others: an arm is named that is better than it"
                );
                return Err(section.impossible("better", message));
            }
            Claim::Better { arm }
        }
        "equivalent" => match section.get("equivalent").map(|node| &node.value) {
            Some(Value::Boolean(true)) => Claim::Equivalent { arm: None },
            Some(Value::Text(_)) => {
                let arm = named("equivalent")?;
                if arm == baseline {
                    return Err(section.impossible("equivalent", format!("`{arm}` is the baseline itself")));
                }
                Claim::Equivalent { arm: Some(arm) }
            }
            _ => return Err(section.impossible("equivalent", "it is `true`, of all arms, or an arm's name")),
        },
        _ => sufficient(section, &about, sweep)?,
    };
    Ok(predicted(claim))
}

fn sufficient(section: &Section<'_>, about: &[&Arm], sweep: Option<&str>) -> Result<Claim, ConfigError> {
    let value = section.value::<f64>("sufficient")?.unwrap_or_default();
    let Some(key) = sweep else {
        let message = "there is no sweep whose smallest sufficient value it could be: set `[grid]`, or `sweep`";
        return Err(section.impossible("sufficient", message));
    };
    let mut tried: Vec<f64> = about.iter().filter_map(|arm| arms::number_at(&arm.config, key)).collect();
    tried.sort_by(f64::total_cmp);
    tried.dedup();
    if tried.contains(&value) {
        return Ok(Claim::Sufficient { value });
    }
    let tried: Vec<String> = tried.iter().map(f64::to_string).collect();
    let message = format!("no arm has `{key} = {value}`; tried are {}", list(tried.iter().map(String::as_str)));
    Err(section.impossible("sufficient", message))
}

/// `where`, its keys in full and its values as the arms have them.
fn level(section: &Section<'_>, arms: &[Arm], sweep: Option<&str>) -> Result<BTreeMap<String, String>, ConfigError> {
    let Some(given) = section.section("where")? else { return Ok(BTreeMap::new()) };
    let configs: Vec<Vec<(String, String)>> = arms.iter().map(|arm| leaves(&arm.config.to_toml())).collect();
    let value_of = |config: &[(String, String)], key: &str| {
        config.iter().find(|(other, _)| other == key).map(|(_, value)| value.clone())
    };
    let mut level = BTreeMap::new();
    for (written, key, value) in wanted(&given)? {
        let mut keys: Vec<&str> = vec![];
        for (full, _) in configs.iter().flatten() {
            let is_it = *full == key || full.strip_suffix(&key).is_some_and(|section| section.ends_with('.'));
            if is_it && !keys.contains(&full.as_str()) {
                keys.push(full);
            }
        }
        let differs = |key: &&str| configs.iter().any(|config| value_of(config, key) != value_of(&configs[0], key));
        let differing: Vec<&str> = keys.iter().copied().filter(|key| differs(key)).collect();
        let full = match (&keys[..], &differing[..]) {
            ([only], _) | (_, [only]) => only.to_string(),
            ([], _) => {
                let last = |key: &'_ str| key.rsplit('.').next().unwrap_or_default().to_string();
                let known: Vec<String> = configs.iter().flatten().map(|(full, _)| last(full)).collect();
                let help = nearest(&key, known.iter().map(String::as_str));
                let help = help.map(|near| format!("did you mean `{near}`?")).into_iter().collect();
                let problem = Problem::UnknownKey { key: given.full(&key) };
                return Err(Diagnostic { help, ..given.at(written, problem) }.into());
            }
            (several, _) => {
                let message = format!("it may be any of {}: write it in full", list(several.iter().copied()));
                return Err(given.impossible(written, message));
            }
        };
        if sweep == Some(full.as_str()) {
            let message = format!("`{full}` is swept: a prediction speaks of all of its values");
            return Err(given.impossible(written, message));
        }
        let found = configs.iter().filter_map(|config| value_of(config, &full)).find(|found| is_same(&value, found));
        let Some(found) = found else {
            return Err(given.impossible(written, format!("no arm has `{full} = {}`", shorten(&value, 40))));
        };
        level.insert(full, found);
    }
    Ok(level)
}

/// The keys of `where` as the file has them, with what each names and its value in TOML: `layers`, `"model.layers"` and
/// `model.layers` are the same.
fn wanted<'a>(given: &Section<'a>) -> Result<Vec<(&'a str, String, String)>, ConfigError> {
    let mut wanted = vec![];
    for (key, node) in given.in_order() {
        match (given.inner(key, node), &node.place) {
            (Some(inner), _) => {
                let leaves = inner.leaves(&[])?;
                wanted.extend(leaves.into_iter().map(|leaf| (key, format!("{key}.{}", leaf.key), leaf.value)));
            }
            (None, KeyPlace::File { value, .. }) => {
                let text = given.document.text.get(value.clone()).unwrap_or_default();
                wanted.push((key, key.to_string(), text.to_string()));
            }
            (None, KeyPlace::Override(_)) => {}
        }
    }
    Ok(wanted)
}

/// Whether two values in TOML are the same, however they are written.
fn is_same(one: &str, other: &str) -> bool {
    let read = |text: &str| format!("value = {text}").parse::<toml::Table>().ok()?.remove("value");
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    match (read(one), read(other)) {
        (Some(one), Some(other)) => one == other || number(&one).is_some() && number(&one) == number(&other),
        _ => false,
    }
}
