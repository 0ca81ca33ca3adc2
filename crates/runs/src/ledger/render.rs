//! The ledger as text.

use std::fmt;

use super::{ArmFacts, Ledger};
use crate::{
    experiment::Regime,
    manifest::{DataFile, Program},
    seen::SeenInTraining,
};

impl fmt::Display for Ledger {
    /// A few lines: what is equal, what differs, what ran.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "regime {}: {}", self.regime.name(), super::allowed(self.regime))?;
        self.number(f, "parameters", |arm| arm.parameters.total(), thousands)?;
        self.flops(f)?;
        self.number(f, "tokens a step", |arm| arm.tokens_per_step, thousands)?;
        self.number(f, "steps", |arm| arm.steps, thousands)?;
        for line in self.implied() {
            writeln!(f, "{:14} {line}", "differs")?;
        }
        if !self.vary.is_empty() {
            writeln!(f, "{:14} {} of each pair is its seed, for all arms", "instances", self.vary.join(", "))?;
        }
        writeln!(f, "{:14} {}", "data", self.equal(self.other_data.len()))?;
        for seen in &self.seen {
            writeln!(f, "{:14} {}", "memory", self.told(seen))?;
        }
        writeln!(f, "{:14} {}", "first weights", self.equal(self.other_weights.len()))?;
        if !self.files.is_empty() {
            let files: Vec<String> = self.files.iter().map(DataFile::to_string).collect();
            writeln!(f, "{:14} {}", "files", files.join("; "))?;
        }
        let programs: Vec<String> = self.programs.iter().map(Program::to_string).collect();
        let mixed = if self.programs.len() > 1 { " (mixed!)" } else { "" };
        writeln!(f, "{:14} {}{mixed}", "program", programs.join("; "))?;
        let mixed = if self.backends.len() > 1 { " (mixed!)" } else { "" };
        write!(f, "{:14} {}{mixed}", "backend", self.backends.join(", "))?;
        let mixed = if self.simd.len() > 1 { " (mixed!)" } else { "" };
        if self.simd.is_empty() { Ok(()) } else { write!(f, "\n{:14} {}{mixed}", "vectors", self.simd.join(", ")) }
    }
}

impl Ledger {
    /// A sentence for each thing that differs between arms, what follows from the number of heads included.
    pub fn implied(&self) -> Vec<String> {
        let mut lines = vec![];
        let mut keys: Vec<&str> = vec![];
        for difference in &self.differences {
            if !keys.contains(&difference.key.as_str()) {
                keys.push(&difference.key);
            }
        }
        for key in keys {
            let mut values = vec![];
            for arm in &self.arms {
                let of_arm = self.differences.iter().find(|other| other.arm == arm.name && other.key == key);
                let baseline = || self.differences.iter().find(|other| other.key == key).map(|d| &d.baseline_value);
                let Some(value) = of_arm.map(|difference| &difference.value).or_else(baseline) else { continue };
                values.push((value.clone(), arm.name.as_str()));
            }
            let why = if key == "train.lr" && self.tuned { " (tuned for each arm)" } else { "" };
            lines.push(format!("{key}: {}{why}", by_value(&values)));
        }
        let mut follows = |what: &str, number: &dyn Fn(&ArmFacts) -> Option<usize>| {
            let values = self.arms.iter().filter_map(|arm| Some((number(arm)?.to_string(), arm.name.as_str())));
            let values: Vec<(String, &str)> = values.collect();
            if values.windows(2).any(|pair| pair[0].0 != pair[1].0) {
                lines.push(format!("{what}: {}", by_value(&values)));
            }
        };
        follows("width of a head, which follows", &|arm| Some(arm.d_head));
        follows("rotary dimensions of a head, which follow", &|arm| arm.rotary_dimensions);
        lines
    }

    /// As one number where all runs have the same; else as the range of each arm, with what the pairs say.
    fn flops(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<[u64; 2]> = self.arms.iter().map(|arm| arm.flops_range).collect();
        if ranges.iter().all(|[least, most]| least == most) {
            return self.number(f, "FLOPs a step", |arm| arm.flops_range[0], scaled);
        }
        let (least, most) = (ranges.iter().map(|range| range[0]).min(), ranges.iter().map(|range| range[1]).max());
        let range = format!("{} to {}", scaled(least.unwrap_or_default()), scaled(most.unwrap_or_default()));
        writeln!(f, "{:14} {range} by seed, {}", "FLOPs a step", self.equal(self.other_flops.len()))
    }

    /// In how many pairs something is equal, and how many there are in all where not all have been looked at.
    fn equal(&self, different: usize) -> String {
        let pairs = self.pairs_compared;
        let of = match self.pairs_planned {
            planned if planned > pairs => {
                format!("{} looked at, of {planned}", if pairs == 1 { "pair" } else { "pairs" })
            }
            _ if pairs == 1 => "pair".into(),
            _ => "pairs".into(),
        };
        match different {
            0 if pairs == 0 => "no complete pair".into(),
            0 => format!("equal in {pairs} {of}"),
            _ => format!("different in {different} of {pairs} {of}"),
        }
    }

    fn number(
        &self,
        f: &mut fmt::Formatter<'_>,
        what: &str,
        number: fn(&ArmFacts) -> u64,
        show: fn(u64) -> String,
    ) -> fmt::Result {
        let numbers: Vec<u64> = self.arms.iter().map(number).collect();
        let Some(first) = numbers.first() else { return Ok(()) };
        // By the numbers themselves: two that are shown alike may differ.
        if numbers.iter().all(|number| number == first) {
            let all = if self.regime == Regime::Free { "each" } else { "equal" };
            return writeln!(f, "{what:14} {} {all}", show(*first));
        }
        let named: Vec<(u64, &str)> =
            self.arms.iter().zip(&numbers).map(|(arm, number)| (*number, arm.name.as_str())).collect();
        let shown = grouped(&named).into_iter().map(|(number, arms)| (show(number), arms)).collect();
        writeln!(f, "{what:14} {}", in_arms(shown))
    }

    /// Everything that is to be said beside the verdict in the colour of a warning.
    pub fn warnings(&self) -> Vec<String> {
        self.seen.iter().map(|seen| self.told(seen)).collect()
    }

    /// With the arms that it is about, where it is not about all.
    fn told(&self, seen: &SeenInTraining) -> String {
        let arms: Vec<&str> = seen.arms.iter().map(String::as_str).collect();
        let words = &seen.words;
        if arms.len() < self.arms.len() { format!("in {}: {words}", names(&arms)) } else { words.clone() }
    }
}

/// How many values are written out.
const VALUES: usize = 8;

/// Such as `1 in h1, 8 in h8`; arms of one value together, in the order of the arms.
fn by_value(values: &[(String, &str)]) -> String {
    in_arms(grouped(values))
}

fn in_arms(groups: Vec<(String, Vec<&str>)>) -> String {
    let left_out = groups.len().saturating_sub(VALUES);
    let shown = groups.iter().take(VALUES).map(|(value, arms)| format!("{value} in {}", names(arms)));
    let more = (left_out > 0).then(|| format!("{left_out} more"));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

/// The arms of each value.
fn grouped<'a, T: Clone + PartialEq>(values: &[(T, &'a str)]) -> Vec<(T, Vec<&'a str>)> {
    let mut groups: Vec<(T, Vec<&str>)> = vec![];
    for (value, arm) in values {
        match groups.iter_mut().find(|(other, _)| other == value) {
            Some((_, arms)) => arms.push(arm),
            None => groups.push((value.clone(), vec![arm])),
        }
    }
    groups
}

/// One or two arms by name, more by their number.
fn names(arms: &[&str]) -> String {
    match arms {
        [one] => (*one).into(),
        [one, other] => format!("{one} and {other}"),
        more => format!("{} arms", more.len()),
    }
}

/// Such as `54,856`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Such as `1.234 G`.
fn scaled(number: u64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(size, _)| number as f64 >= *size) {
        Some((size, unit)) => format!("{:.3} {unit}", number as f64 / size),
        None => number.to_string(),
    }
}
