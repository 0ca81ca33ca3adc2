//! A run's heads in a terminal.

use super::record::{AttentionAnalysis, Flag, HeadAnalysis, HeadMeasures, Place, StepAnalysis};
use crate::terminal::aligned;

/// What stands in a column, and where it comes from.
type Column = (&'static str, fn(&HeadMeasures) -> Option<f64>);

/// What a head reads.
const READS: [Column; 7] = [
    ("entropy", |head| head.entropy),
    ("top weight", |head| head.confidence),
    ("distance", |head| head.distance),
    ("previous", |head| head.previous_token),
    ("duplicate", |head| head.duplicate_token),
    ("induction", |head| head.induction),
    ("position 0", |head| head.first_position),
];

/// What it is worth.
const WORTH: [Column; 4] = [
    ("output share", |head| head.output_share),
    ("loss without", |head| head.removal),
    ("loss alone", |head| head.alone),
    ("importance", |head| head.importance),
];

/// The heads at the end of the run, the untrained ones in parentheses; no line end at the end.
pub fn table(analysis: &HeadAnalysis) -> String {
    let (Some(last), Some(untrained)) = (analysis.last(), analysis.untrained()) else { return String::new() };
    let mut sections = vec![head(analysis, last, untrained)];
    for (now, before) in last.attentions.iter().zip(&untrained.attentions) {
        sections.push(layer(now, before));
    }
    sections.push(
        "entropy over its greatest possible; weights as shares of a row; loss without = rise of the loss, in nats, when\n\
         the head is replaced by its mean, loss alone = when all others of its layer are; nearest = the most similar head\n\
         of the layer and the Jensen-Shannon divergence to it, in nats"
            .into(),
    );
    sections.join("\n\n")
}

fn head(analysis: &HeadAnalysis, last: &StepAnalysis, untrained: &StepAnalysis) -> String {
    let HeadAnalysis { name, seed, task, layers, heads, samples, scored, .. } = analysis;
    let number = |count: &usize, what: &str| format!("{count} {what}{}", if *count == 1 { "" } else { "s" });
    format!(
        "{name} seed {seed} on {task}: {} of {}, after {} steps (untrained in parentheses)\n\
         {} of the validation set, {} scored: loss {:.4} ({:.4}) nats, accuracy {:.4} ({:.4})",
        number(layers, "layer"),
        number(heads, "head"),
        last.step,
        number(samples, "sample"),
        number(scored, "position"),
        last.loss,
        untrained.loss,
        last.accuracy,
        untrained.accuracy,
    )
}

fn layer(now: &AttentionAnalysis, before: &AttentionAnalysis) -> String {
    let what = match now.place {
        Place::Decoder => "",
        Place::Encoder => "encoder, ",
        Place::Cross => "cross-attention, ",
    };
    let mut tables = vec![format!("{what}layer {}", now.layer), rows(now, before, &READS, |_| vec![], &[])];
    let last = |head: &HeadMeasures| {
        let nearest = head.nearest.map_or("-".into(), |near| format!("{}: {:.3}", near.head, near.divergence));
        vec![nearest, head.flags.iter().map(|&flag| word(flag)).collect::<Vec<_>>().join(" ")]
    };
    tables.push(rows(now, before, &WORTH, last, &["nearest", ""]));
    let registers = now.heads.iter().filter_map(|head| head.registers.as_ref()).map(Vec::len).max().unwrap_or_default();
    if registers > 0 {
        tables.push(of_registers(now, before, registers));
    }
    tables.retain(|table| !table.is_empty());
    tables.join("\n")
}

/// One line a head, one column a measure that any head has, and what `more` adds.
fn rows(
    now: &AttentionAnalysis,
    before: &AttentionAnalysis,
    columns: &[Column],
    more: impl Fn(&HeadMeasures) -> Vec<String>,
    more_titles: &[&str],
) -> String {
    let columns: Vec<&Column> =
        columns.iter().filter(|(_, of)| now.heads.iter().any(|head| of(head).is_some())).collect();
    if columns.is_empty() && more_titles.is_empty() {
        return String::new();
    }
    let titles = columns.iter().map(|(title, _)| *title).chain(more_titles.iter().copied()).map(String::from);
    let mut rows = vec![[String::from("  head")].into_iter().chain(titles).collect::<Vec<_>>()];
    for (h, (now, before)) in now.heads.iter().zip(&before.heads).enumerate() {
        let numbers = columns.iter().map(|(_, of)| both(of(now), of(before)));
        rows.push([format!("  {h}")].into_iter().chain(numbers).chain(more(now)).collect());
    }
    aligned(&rows)
}

/// Weight on the latest write of each register.
fn of_registers(now: &AttentionAnalysis, before: &AttentionAnalysis, registers: usize) -> String {
    let mut rows = vec![
        [String::from("  head")].into_iter().chain((0..registers).map(|r| format!("register {r}"))).collect::<Vec<_>>(),
    ];
    let of = |head: &HeadMeasures, r: usize| head.registers.as_ref().and_then(|registers| registers.get(r).copied());
    for (h, (now, before)) in now.heads.iter().zip(&before.heads).enumerate() {
        let numbers = (0..registers).map(|r| both(of(now, r), of(before, r)));
        rows.push([format!("  {h}")].into_iter().chain(numbers).collect());
    }
    aligned(&rows)
}

fn both(now: Option<f64>, before: Option<f64>) -> String {
    let number = |number: Option<f64>| number.map_or("-".into(), shown);
    format!("{} ({})", number(now), number(before))
}

/// Three digits after the point, fewer where there are many before it.
fn shown(number: f64) -> String {
    let digits = match number.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.digits$}");
    if text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) {
        text.trim_start_matches('-').into()
    } else {
        text
    }
}

fn word(flag: Flag) -> &'static str {
    match flag {
        Flag::Dead => "dead",
        Flag::Duplicate => "duplicate",
        Flag::Sink => "sink",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::record::Nearest;

    #[test]
    fn tables_line_up_and_leave_out_what_nobody_has() {
        let head = |scale: f64, flags: Vec<Flag>| HeadMeasures {
            entropy: Some(0.5 * scale),
            confidence: Some(scale),
            distance: Some(12.345 * scale),
            registers: Some(vec![0.25, scale]),
            output_share: Some(scale / 2.0),
            removal: Some(-0.0001 * scale),
            alone: Some(1.5 * scale),
            importance: Some(123.4),
            nearest: Some(Nearest { head: 1, divergence: scale / 3.0 }),
            flags,
            ..Default::default()
        };
        let attention = |scale, flags: Vec<Flag>| AttentionAnalysis {
            place: Place::Decoder,
            layer: 0,
            heads: vec![head(scale, flags), HeadMeasures { nearest: None, ..head(scale / 2.0, vec![]) }],
            divergence: vec![],
            maps: None,
        };
        let step = |step, scale, flags| StepAnalysis {
            step,
            loss: scale,
            accuracy: 1.0 - scale / 2.0,
            attentions: vec![attention(scale, flags)],
        };
        let analysis = HeadAnalysis {
            schema_version: 1,
            computed_from: String::new(),
            name: "h2".into(),
            seed: 3,
            task: "registers".into(),
            layers: 1,
            heads: 2,
            kv_heads: 2,
            d_head: 8,
            causal: true,
            samples: 64,
            scored: 1,
            shown: vec![],
            steps: vec![step(0, 1.0, vec![]), step(800, 0.25, vec![Flag::Dead, Flag::Sink])],
        };
        insta::assert_snapshot!(table(&analysis), @r"
        h2 seed 3 on registers: 1 layer of 2 heads, after 800 steps (untrained in parentheses)
        64 samples of the validation set, 1 position scored: loss 0.2500 (1.0000) nats, accuracy 0.8750 (0.5000)

        layer 0
          head        entropy     top weight     distance
          0     0.125 (0.500)   0.250 (1.00)  3.09 (12.3)
          1     0.062 (0.250)  0.125 (0.500)  1.54 (6.17)
          head   output share   loss without     loss alone  importance   nearest
          0     0.125 (0.500)  0.000 (0.000)   0.375 (1.50)   123 (123)  1: 0.083  dead sink
          1     0.062 (0.250)  0.000 (0.000)  0.188 (0.750)   123 (123)         -
          head     register 0     register 1
          0     0.250 (0.250)   0.250 (1.00)
          1     0.250 (0.250)  0.125 (0.500)

        entropy over its greatest possible; weights as shares of a row; loss without = rise of the loss, in nats, when
        the head is replaced by its mean, loss alone = when all others of its layer are; nearest = the most similar head
        of the layer and the Jensen-Shannon divergence to it, in nats
        ");
    }
}
