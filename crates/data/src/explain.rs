//! A sample as lines that a person can follow, for tasks that have no way of their own.

use std::fmt::Write as _;

use crate::definition::Definition;
use crate::sample::{IGNORE, Sample};

/// A heading, and a line for each position: what is read, and where it is scored, what should be said.
pub(crate) fn explain(task: &dyn Definition, sample: &Sample) -> String {
    let name = |token: &u32| task.source_token_name(*token);
    let mut text = match &sample.source {
        Some(source) => {
            let read: Vec<String> = source.tokens.iter().take(source.real).map(name).collect();
            format!(
                "{} positions, {} real; source: {}; * = scored\n",
                sample.targets.len(),
                sample.real,
                read.join(" ")
            )
        }
        None => format!("{} positions, {} real; * = scored\n", sample.targets.len(), sample.real),
    };
    text += "    t  read\n";
    let sizes = task.numbers().unwrap_or_default();
    let listed = |numbers: &[f32]| {
        const SHOWN: usize = 8;
        let shown: Vec<String> = numbers.iter().take(SHOWN).map(|number| format!("{number:.3}")).collect();
        shown.join(" ") + if numbers.len() > SHOWN { " …" } else { "" }
    };
    let row = |numbers: &[f32], width: usize, position: usize| {
        numbers.chunks(width.max(1)).nth(position).filter(|_| width > 0).map(listed)
    };
    for (position, &target) in sample.targets.iter().enumerate() {
        let numbers = sample.numbers.as_ref();
        let read = match (sample.tokens.get(position), numbers) {
            (_, _) if position >= sample.real => "padding".to_string(),
            (Some(&token), _) => task.token_name(token),
            (None, Some(numbers)) => row(&numbers.inputs, sizes.inputs, position).unwrap_or_default(),
            (None, None) => String::new(),
        };
        let said = numbers.filter(|numbers| numbers.scored.get(position) == Some(&true));
        let scored = match (target, said) {
            (IGNORE, None) => String::new(),
            (IGNORE, Some(numbers)) => {
                format!("  * {}", row(&numbers.targets, sizes.outputs, position).unwrap_or_default())
            }
            (class, _) => format!("  * {}", task.answer_name(class as u32)),
        };
        let _ = writeln!(text, "{position:>5}  {}", format!("{read}{scored}").trim_end());
    }
    text
}
