//! A run's heads in a terminal, and how many of them each arm of an experiment uses.

use data::metrics::{MetricKind, Scores};
use runs::heads::{
    AlikeHeads, ArmHeads, AttentionAnalysis, AttentionSite, ExperimentHeads, Flag, HeadAnalysis, HeadMeasures,
    HeadPlace, MeasureInfo, Nearest, Pruning, PruningPoint, Role, RoleInfo, StepAnalysis, Tells,
};

use crate::results::{Results, SweepAtLevel};
use crate::text::{aligned, counted, short, wrapped};

/// Characters of a line of the explanations.
const LINE: usize = 120;

/// The heads at the end of the run, the untrained ones in parentheses; no line end at the end.
pub fn table(analysis: &HeadAnalysis) -> String {
    let (Some(last), Some(untrained)) = (analysis.last(), analysis.untrained()) else { return String::new() };
    let mut sections = vec![head(analysis, last, untrained)];
    let finding = |alike: &AlikeHeads| wrapped(&format!("{}.", alike.words), LINE).join("\n");
    sections.extend(analysis.alike.iter().map(finding));
    for (now, before) in last.attentions.iter().zip(&untrained.attentions) {
        sections.push(layer(&analysis.measures, now, before));
    }
    sections.extend(analysis.pruning.as_ref().map(pruned));
    sections.push(glossary(analysis));
    sections.retain(|section| !section.is_empty());
    sections.join("\n\n")
}

fn head(analysis: &HeadAnalysis, last: &StepAnalysis, untrained: &StepAnalysis) -> String {
    let HeadAnalysis { name, seed, task, layers, heads, samples, scored, .. } = analysis;
    let score = |(kind, now): (&MetricKind, f64)| {
        format!("{} {now:.4} ({:.4}){}", kind.words, untrained.scores.number(kind), kind.unit_told())
    };
    format!(
        "{name} seed {seed} on {task}: {} of {}, after {} steps (untrained in parentheses)\n\
         {} of the validation set, {} scored: {}",
        counted(*layers, "layer"),
        counted(*heads, "head"),
        last.step,
        counted(*samples, "sample"),
        counted(*scored, "position"),
        last.scores.iter().map(score).collect::<Vec<_>>().join(", "),
    )
}

fn layer(measures: &[MeasureInfo], now: &AttentionAnalysis, before: &AttentionAnalysis) -> String {
    let single = |tells| {
        let measures = measures.iter().filter(move |measure| measure.tells == tells && measure.parts.is_empty());
        measures.map(|measure| Column { title: &measure.title, key: &measure.key, part: 0 }).collect::<Vec<_>>()
    };
    let mut tables = vec![place(now.site, now.layer)];
    tables.extend((now.heads.iter().enumerate()).filter_map(|(h, head)| told_roles(h, head)));
    tables.push(rows(now, before, &single(Tells::Reads), false));
    tables.push(rows(now, before, &single(Tells::Worth), true));
    for measure in measures.iter().filter(|measure| !measure.parts.is_empty()) {
        let parts = measure.parts.iter().enumerate();
        let columns: Vec<Column> = parts.map(|(part, title)| Column { title, key: &measure.key, part }).collect();
        let table = rows(now, before, &columns, false);
        tables.extend((!table.is_empty()).then(|| format!("  {}:\n{table}", measure.title)));
    }
    tables.retain(|table| !table.is_empty());
    tables.join("\n")
}

/// What a head is for, each role with its number and that of the untrained head: "head 2 looks up register 1, 0.81 (0.06)".
fn told_roles(h: usize, head: &HeadMeasures) -> Option<String> {
    let told = |role: &Role| format!("{}, {}", role.words, both(Some(role.value), role.untrained));
    let told: Vec<String> = head.roles.iter().map(told).collect();
    (!told.is_empty()).then(|| format!("  head {h} {}", told.join("; ")))
}

fn place(site: AttentionSite, layer: usize) -> String {
    let what = match site {
        AttentionSite::Decoder => "",
        AttentionSite::Encoder => "encoder, ",
        AttentionSite::Cross => "cross-attention, ",
    };
    format!("{what}layer {layer}")
}

/// Where heads all look alike: a sentence for each arm in which that is so in any run.
pub fn alike(heads: &ExperimentHeads) -> Vec<String> {
    let of = |arm: &ArmHeads| {
        let known: Vec<&HeadAnalysis> = arm.runs.iter().filter_map(|run| run.analysis.as_ref()).collect();
        let found: Vec<&&HeadAnalysis> = known.iter().filter(|analysis| !analysis.alike.is_empty()).collect();
        let words = &found.first()?.alike.first()?.words;
        Some(format!("{}, {} of {}: {words}", arm.label, found.len(), counted(known.len(), "run")))
    };
    heads.arms.iter().filter_map(of).collect()
}

/// How many heads each arm uses, one line an arm, and beside them how many training needs, where that was swept; empty where none
/// was pruned.
pub fn used(heads: &ExperimentHeads, results: &Results) -> String {
    used_beside(heads, needed(results).as_deref())
}

fn used_beside(heads: &ExperimentHeads, needed: Option<&str>) -> String {
    let arms: Vec<_> = heads.arms.iter().filter_map(|arm| Some((arm, arm.pruning()?))).collect();
    let Some((_, (_, first))) = arms.first() else { return String::new() };
    let (metric, margin) = (metric_words(first), first.used.margin);
    let titles = ["heads of one run", "used", "of", &format!("test {metric} with them"), "with all", "seed"];
    let mut rows = vec![titles.map(String::from).to_vec()];
    for (arm, (run, pruning)) in arms {
        let value = |point: Option<&PruningPoint>| point.map_or("-".into(), |point| told(point, &pruning.used.metric));
        let seed = run.analysis.as_ref().map_or(run.pair, |analysis| analysis.seed);
        let all = pruning.whole().map_or(0, |whole| whole.kept);
        let (label, used) = (arm.label.clone(), pruning.used.heads.to_string());
        let (with_them, with_all) = (value(pruning.used()), value(pruning.whole()));
        rows.push(vec![label, used, all.to_string(), with_them, with_all, seed.to_string()]);
    }
    let words = format!(
        "The fewest heads with which a trained model, one of each arm, is within {margin} of its {metric} with all, their means in \
         the place of the others: what it uses, not what it needed to be trained with."
    );
    let mut lines = vec![aligned(&rows)];
    lines.extend(wrapped(&words, LINE).into_iter().map(|line| format!("  {line}")));
    lines.extend(needed.map(|needed| format!("  needed to be trained with: {needed}")));
    lines.join("\n")
}

/// What a sweep over heads answers, level by level.
fn needed(results: &Results) -> Option<String> {
    results.sweep.as_ref().filter(|swept| swept.key == "model.heads")?;
    let told = |sweep: &SweepAtLevel| match &sweep.at {
        Some(at) => format!("{} {at}", sweep.words),
        None => sweep.words.clone(),
    };
    let sweeps = &results.findings.sweeps;
    (!sweeps.is_empty()).then(|| sweeps.iter().map(told).collect::<Vec<_>>().join("; "))
}

/// What a run is with fewer and fewer heads.
fn pruned(pruning: &Pruning) -> String {
    let (metric, margin, used) = (metric_words(pruning), pruning.used.margin, pruning.used.heads);
    let all = pruning.whole().map_or(0, |whole| whole.kept);
    let kinds: Vec<&MetricKind> =
        pruning.whole().iter().flat_map(|whole| whole.test.iter()).map(|(kind, _)| kind).collect();
    let titles = kinds.iter().map(|kind| format!("test {}{}", kind.words, kind.unit_told().replace(' ', ", ")));
    let mut rows = vec![
        [String::from("  kept")]
            .into_iter()
            .chain(titles)
            .chain(["removed last".into(), "".into()])
            .collect::<Vec<_>>(),
    ];
    for point in &pruning.points {
        let numbers = kinds.iter().map(|kind| with_error(&point.test, &point.standard_error, kind));
        let removed = point
            .removed
            .map_or("-".into(), |HeadPlace { site, layer, head }| format!("{} head {head}", place(site, layer)));
        let mark = if point.kept == used { "used" } else { "" };
        rows.push([format!("  {}", point.kept)].into_iter().chain(numbers).chain([removed, mark.into()]).collect());
    }
    format!(
        "heads used: {used} of {all}, the fewest with which test {metric} is within {margin} of that with all\n{}\n  {}",
        aligned(&rows),
        wrapped(
            &format!(
                "The head of which the removal costs least goes first, by the loss on {} ({} of the model); read on {}, with \
                 standard errors over samples.",
                counted(pruning.validation_samples, "validation sample"),
                passes(pruning.passes),
                counted(pruning.test_samples, "test sample"),
            ),
            LINE
        )
        .join("\n  ")
    )
}

fn passes(count: usize) -> String {
    format!("{count} pass{}", if count == 1 { "" } else { "es" })
}

/// Such as "0.9931 ± 0.0012".
fn with_error(test: &Scores, error: &Scores, kind: &MetricKind) -> String {
    match error.get(kind) {
        Some(error) => format!("{:.4} ± {error:.4}", test.number(kind)),
        None => format!("{:.4}", test.number(kind)),
    }
}

fn told(point: &PruningPoint, metric: &str) -> String {
    MetricKind::find(metric).map_or("-".into(), |kind| with_error(&point.test, &point.standard_error, kind))
}

fn metric_words(pruning: &Pruning) -> String {
    MetricKind::find(&pruning.used.metric).map_or_else(|| pruning.used.metric.clone(), |kind| kind.words.into())
}

/// A number of each head.
struct Column<'a> {
    title: &'a str,
    key: &'a str,
    part: usize,
}

impl Column<'_> {
    fn of(&self, head: &HeadMeasures) -> Option<f64> {
        head.numbers(self.key).get(self.part).copied()
    }
}

/// One line a head, one column a number that any head has; with what is remarkable at the end.
fn rows(now: &AttentionAnalysis, before: &AttentionAnalysis, columns: &[Column], is_last: bool) -> String {
    let columns: Vec<&Column> =
        columns.iter().filter(|column| now.heads.iter().any(|head| column.of(head).is_some())).collect();
    if columns.is_empty() && !is_last {
        return String::new();
    }
    let more = if is_last { &["nearest", ""][..] } else { &[] };
    let titles = columns.iter().map(|column| column.title).chain(more.iter().copied()).map(String::from);
    let mut rows = vec![[String::from("  head")].into_iter().chain(titles).collect::<Vec<_>>()];
    for (h, (now, before)) in now.heads.iter().zip(&before.heads).enumerate() {
        let numbers = columns.iter().map(|column| both(column.of(now), column.of(before)));
        let more = if is_last { remarkable(now) } else { vec![] };
        rows.push([format!("  {h}")].into_iter().chain(numbers).chain(more).collect());
    }
    aligned(&rows)
}

fn remarkable(head: &HeadMeasures) -> Vec<String> {
    let nearest = head.nearest.map_or("-".into(), |Nearest { head, divergence }| format!("{head}: {divergence:.3}"));
    vec![nearest, head.flags.iter().map(|flag| flag.name()).collect::<Vec<_>>().join(" ")]
}

fn both(now: Option<f64>, before: Option<f64>) -> String {
    let number = |number: Option<f64>| number.map_or("-".into(), short);
    format!("{} ({})", number(now), number(before))
}

/// What each measure says, and each flag that a head carries.
fn glossary(analysis: &HeadAnalysis) -> String {
    let carried = |flag: &Flag| {
        let heads =
            analysis.last().into_iter().flat_map(|step| &step.attentions).flat_map(|attention| &attention.heads);
        heads.into_iter().any(|head| head.flags.contains(flag))
    };
    let flags = Flag::ALL.into_iter().filter(carried).map(|flag| format!("{}: {}", flag.name(), flag.about()));
    let measures = &analysis.measures;
    let nearest = "nearest: The most similar head of the layer and the Jensen-Shannon divergence of its rows, in nats.";
    let is_told = |role: &&RoleInfo| {
        let heads = analysis.last().into_iter().flat_map(|step| &step.attentions).flat_map(|a| &a.heads);
        heads.into_iter().any(|head| head.roles.iter().any(|own| own.role == role.key))
    };
    let roles = analysis.roles.iter().filter(is_told).map(|role| format!("role {}: {}.", role.title, role.rule));
    let measures = measures.iter().map(|measure| format!("{}: {}", measure.title, measure.glossary));
    let entries: Vec<String> = measures
        .chain([nearest.to_string()])
        .chain(flags)
        .chain(roles)
        .map(|entry| wrapped(&entry, LINE).join("\n  "))
        .collect();
    entries.join("\n")
}

#[cfg(test)]
mod tests {
    use data::metrics::{ACCURACY, LOSS, Scores};
    use runs::heads::{HeadsUsed, MeasureValue, OfRun, RunHeads, SCHEMA_VERSION, Tolerance, Unit};

    use super::*;

    fn measure(key: &str, title: &str, tells: Tells, parts: &[&str]) -> MeasureInfo {
        MeasureInfo {
            key: key.into(),
            title: title.into(),
            glossary: format!("What {title} says."),
            reads: None,
            range: None,
            unit: Unit::Share,
            tells,
            across: OfRun::Mean,
            parts: parts.iter().map(|part| part.to_string()).collect(),
        }
    }

    fn analysis(measures: Vec<MeasureInfo>, layers: usize, steps: Vec<StepAnalysis>) -> HeadAnalysis {
        HeadAnalysis {
            schema_version: SCHEMA_VERSION,
            computed_from: String::new(),
            name: "h2".into(),
            seed: 3,
            task: "registers".into(),
            layers,
            heads: 2,
            kv_heads: 2,
            d_head: 8,
            causal: true,
            samples: 64,
            scored: 1,
            measures,
            roles: vec![],
            alike: vec![],
            shown: vec![],
            steps,
            pruning: None,
        }
    }

    #[test]
    fn tables_line_up_and_leave_out_what_nobody_has() {
        let head = |scale: f64, flags: Vec<Flag>| HeadMeasures {
            measures: [
                ("entropy", 0.5 * scale),
                ("distance", 12.345 * scale),
                ("output_share", scale / 2.0),
                ("removal", -0.0001 * scale),
                ("importance", 123.4),
            ]
            .map(|(key, value)| (key.to_string(), MeasureValue::Number(value)))
            .into_iter()
            .chain([("needed".to_string(), MeasureValue::Parts(vec![0.25, scale]))])
            .collect(),
            nearest: Some(Nearest { head: 1, divergence: scale / 3.0 }),
            flags,
            roles: vec![],
        };
        let attention = |scale, flags: Vec<Flag>| AttentionAnalysis {
            site: AttentionSite::Decoder,
            layer: 0,
            heads: vec![head(scale, flags), HeadMeasures { nearest: None, ..head(scale / 2.0, vec![]) }],
            divergence: vec![],
            maps: None,
        };
        let step = |step, scale, flags| StepAnalysis {
            step,
            scores: Scores::default().with(&LOSS, scale).with(&ACCURACY, 1.0 - scale / 2.0),
            answers: None,
            attentions: vec![attention(scale, flags)],
        };
        let measures = vec![
            measure("entropy", "entropy", Tells::Reads, &[]),
            measure("distance", "mean distance", Tells::Reads, &[]),
            measure("induction", "induction", Tells::Reads, &[]),
            measure("needed", "weight on what is needed", Tells::Reads, &["register 0", "register 1"]),
            measure("output_share", "output share", Tells::Worth, &[]),
            measure("removal", "cost of removal", Tells::Worth, &[]),
            measure("importance", "importance", Tells::Worth, &[]),
        ];
        let steps = vec![step(0, 1.0, vec![]), step(800, 0.25, vec![Flag::Spare, Flag::Dead, Flag::Sink])];
        let analysis = analysis(measures, 1, steps);
        insta::assert_snapshot!(table(&analysis), @r"
        h2 seed 3 on registers: 1 layer of 2 heads, after 800 steps (untrained in parentheses)
        64 samples of the validation set, 1 position scored: loss 0.2500 (1.0000) nats, accuracy 0.8750 (0.5000)

        layer 0
          head        entropy  mean distance
          0     0.125 (0.500)    3.09 (12.3)
          1     0.062 (0.250)    1.54 (6.17)
          head   output share  cost of removal  importance   nearest
          0     0.125 (0.500)    0.000 (0.000)   123 (123)  1: 0.083  spare dead sink
          1     0.062 (0.250)    0.000 (0.000)   123 (123)         -
          weight on what is needed:
          head     register 0     register 1
          0     0.250 (0.250)   0.250 (1.00)
          1     0.250 (0.250)  0.125 (0.500)

        entropy: What entropy says.
        mean distance: What mean distance says.
        induction: What induction says.
        weight on what is needed: What weight on what is needed says.
        output share: What output share says.
        cost of removal: What cost of removal says.
        importance: What importance says.
        nearest: The most similar head of the layer and the Jensen-Shannon divergence of its rows, in nats.
        spare: A head whose removal, alone, raises the loss by less than 0.01 nat, whatever it writes. Of two heads that do the
          same both are spare, though one of them is needed.
        dead: A spare head that writes less than a tenth of an equal share, too.
        sink: A head with more than 0.3 of its weight on the first position.
        ");
    }

    fn pruning() -> Pruning {
        let point = |kept: usize, loss, accuracy| {
            let place = |site, layer| Some(HeadPlace { site, layer, head: kept });
            let errors = Scores::default().with(&LOSS, 0.0123).with(&ACCURACY, 0.004);
            PruningPoint {
                kept,
                removed: match kept {
                    2 => None,
                    1 => place(AttentionSite::Decoder, 0),
                    _ => place(AttentionSite::Cross, 0),
                },
                validation: Scores::default().with(&LOSS, loss).with(&ACCURACY, accuracy),
                test: Scores::default().with(&LOSS, loss).with(&ACCURACY, accuracy),
                standard_error: errors,
                difference_standard_error: errors,
            }
        };
        let points = vec![point(2, 0.1, 0.99), point(1, 0.15, 0.97), point(0, 2.0, 0.125)];
        let used = HeadsUsed::of(&points, Tolerance { metric: &ACCURACY, margin: 0.02 });
        Pruning { validation_samples: 64, passes: 6, test_samples: 512, points, used }
    }

    #[test]
    fn a_run_says_how_many_of_its_heads_it_uses() {
        let step = StepAnalysis { step: 0, scores: Scores::default(), answers: None, attentions: vec![] };
        let analysis = HeadAnalysis { pruning: Some(pruning()), ..analysis(vec![], 1, vec![step]) };
        let text = table(&analysis);
        let part: Vec<&str> = text.split("\n\n").filter(|part| part.starts_with("heads used")).collect();
        insta::assert_snapshot!(part.join("\n\n"), @r"
        heads used: 1 of 2, the fewest with which test accuracy is within 0.02 of that with all
          kept  test loss, nats    test accuracy                     removed last
          2     0.1000 ± 0.0123  0.9900 ± 0.0040                                -
          1     0.1500 ± 0.0123  0.9700 ± 0.0040                   layer 0 head 1  used
          0     2.0000 ± 0.0123  0.1250 ± 0.0040  cross-attention, layer 0 head 0
          The head of which the removal costs least goes first, by the loss on 64 validation samples (6 passes of the model); read
          on 512 test samples, with standard errors over samples.
        ");
    }

    #[test]
    fn arms_say_how_many_of_their_heads_they_use() {
        let arm = |label: &str, pruning| {
            let analysis = HeadAnalysis { pruning, ..analysis(vec![], 1, vec![]) };
            let run = RunHeads { pair: 3, directory: String::new(), analysis: Some(analysis), problem: None };
            let (name, label) = (label.into(), label.into());
            ArmHeads { name, label, measures: vec![], roles: vec![], untrained: None, last: None, runs: vec![run] }
        };
        let heads = |arms| ExperimentHeads { schema_version: SCHEMA_VERSION, name: "sweep".into(), arms };
        let few = Pruning { points: pruning().points.split_off(1), ..pruning() };
        let few = few.within(Tolerance { metric: &ACCURACY, margin: 0.02 });
        let arms = vec![arm("1 head", Some(few)), arm("2 heads", Some(pruning())), arm("3 heads", None)];
        insta::assert_snapshot!(used_beside(&heads(arms), Some("4 with one layer; more than 8 with two")), @r"
        heads of one run  used  of  test accuracy with them         with all  seed
        1 head               1   1          0.9700 ± 0.0040  0.9700 ± 0.0040     3
        2 heads              1   2          0.9700 ± 0.0040  0.9900 ± 0.0040     3
          The fewest heads with which a trained model, one of each arm, is within 0.02 of its accuracy with all, their means in
          the place of the others: what it uses, not what it needed to be trained with.
          needed to be trained with: 4 with one layer; more than 8 with two
        ");
        assert_eq!(used_beside(&heads(vec![arm("3 heads", None)]), Some("4")), "");
    }

    #[test]
    fn every_attention_of_a_model_is_named_if_it_has_any() {
        let of = |sites: &[AttentionSite]| {
            let heads = vec![HeadMeasures::default()];
            let attention = |&site: &AttentionSite| AttentionAnalysis {
                site,
                layer: 0,
                heads: heads.clone(),
                divergence: vec![],
                maps: None,
            };
            let attentions: Vec<AttentionAnalysis> = sites.iter().map(attention).collect();
            let step = StepAnalysis { step: 0, scores: Scores::default(), answers: None, attentions };
            table(&analysis(vec![], usize::from(!sites.is_empty()), vec![step]))
        };
        let text = of(&[AttentionSite::Decoder, AttentionSite::Encoder, AttentionSite::Cross]);
        for line in ["\n\nlayer 0\n", "\n\nencoder, layer 0\n", "\n\ncross-attention, layer 0\n"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(of(&[]).starts_with("h2 seed 3 on registers: 0 layers of 2 heads"));
    }
}
