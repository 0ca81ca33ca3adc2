//! What the heads of an experiment do across its runs, from the analysis of each.

use runs::heads::{
    AcrossRuns, ArmHeads, ExperimentHeads, Flag, HeadAnalysis, HeadMeasures, MeasureInfo, OfRun, RoleInfo, RunHeads,
    SCHEMA_VERSION, Spread, StepAnalysis,
};
use statistics::describe::mean_of_checked;

use crate::reading::ExperimentRuns;

/// The heads of an experiment; `analysed` holds those of each of its records, in their order.
pub fn of_experiment(runs: &ExperimentRuns, analysed: Vec<RunHeads>) -> ExperimentHeads {
    let mut analysed: Vec<(&str, RunHeads)> =
        runs.records.iter().map(|record| record.plan.arm.as_str()).zip(analysed).collect();
    let arms = runs.experiment.arms.iter().map(|arm| {
        let own = analysed.extract_if(.., |(name, _)| *name == arm.name).map(|(_, run)| run);
        of_arm(&arm.name, &arm.label, own.collect())
    });
    ExperimentHeads { schema_version: SCHEMA_VERSION, name: runs.experiment.name.clone(), arms: arms.collect() }
}

/// The heads of one arm. What is measured is said once, for all of its runs.
pub(crate) fn of_arm(name: &str, label: &str, mut runs: Vec<RunHeads>) -> ArmHeads {
    let mut measures: Vec<MeasureInfo> = vec![];
    let mut roles: Vec<RoleInfo> = vec![];
    for analysis in runs.iter_mut().filter_map(|run| run.analysis.as_mut()) {
        let own = std::mem::take(&mut analysis.measures);
        measures.extend(
            own.into_iter().filter(|measure| measures.iter().all(|other| other.key != measure.key)).collect::<Vec<_>>(),
        );
    }
    for analysis in runs.iter_mut().filter_map(|run| run.analysis.as_mut()) {
        let own = std::mem::take(&mut analysis.roles).into_iter();
        roles.extend(own.filter(|role| roles.iter().all(|other| other.key != role.key)).collect::<Vec<_>>());
    }
    let across = |step: fn(&HeadAnalysis) -> Option<&StepAnalysis>| {
        let steps: Vec<&StepAnalysis> = runs.iter().filter_map(|run| step(run.analysis.as_ref()?)).collect();
        across_runs(&measures, &steps)
    };
    let (untrained, last) = (across(HeadAnalysis::untrained), across(HeadAnalysis::last));
    ArmHeads { name: name.into(), label: label.into(), measures, roles, untrained, last, runs }
}

/// Across one step of each run, all of the same arm; `None` without runs.
fn across_runs(measures: &[MeasureInfo], runs: &[&StepAnalysis]) -> Option<AcrossRuns> {
    let heads = runs.iter().map(|run| heads_of(run).count()).max()?;
    let flagged = |flag: Flag| {
        let count = |run: &&StepAnalysis| heads_of(run).filter(|head| head.flags.contains(&flag)).count() as f64;
        Some((flag, spread(runs.iter().map(|run| Some(count(run))))?))
    };
    let measured = |measure: &MeasureInfo| {
        let part = |part: usize| spread(runs.iter().map(|run| of_run(run, measure, part)));
        let parts: Vec<Spread> = (0..measure.parts.len().max(1)).filter_map(part).collect();
        (!parts.is_empty()).then(|| (measure.key.clone(), parts))
    };
    let by_rank: Vec<Vec<f64>> = runs.iter().map(|run| removals(run)).collect();
    let rank = |rank: usize| spread(by_rank.iter().map(|removals| removals.get(rank).copied()));
    Some(AcrossRuns {
        runs: runs.len(),
        heads,
        flags: Flag::ALL.into_iter().filter_map(flagged).collect(),
        measures: measures.iter().filter_map(measured).collect(),
        divergence: spread(runs.iter().map(|run| divergence(run))),
        removal_by_rank: (0..heads).filter_map(rank).collect(),
    })
}

/// Of the runs in which there is such a number; `None` where there is none.
fn spread(values: impl Iterator<Item = Option<f64>>) -> Option<Spread> {
    let values: Vec<f64> = values.flatten().collect();
    Some(Spread {
        mean: (!values.is_empty()).then(|| mean_of_checked(&values))?,
        minimum: values.iter().copied().min_by(f64::total_cmp)?,
        maximum: values.iter().copied().max_by(f64::total_cmp)?,
    })
}

/// The decoder's heads at one step, where every measure is taken.
fn heads_of(step: &StepAnalysis) -> impl Iterator<Item = &HeadMeasures> {
    step.decoder().flat_map(|attention| &attention.heads)
}

/// What stands for the run, for one part of a measure.
fn of_run(step: &StepAnalysis, measure: &MeasureInfo, part: usize) -> Option<f64> {
    let values = heads_of(step).filter_map(|head| head.numbers(&measure.key).get(part).copied());
    match measure.across {
        OfRun::Mean => mean(&values.collect::<Vec<f64>>()),
        OfRun::Greatest => values.max_by(f64::total_cmp),
    }
}

/// What each head's removal costs, the costliest first.
fn removals(step: &StepAnalysis) -> Vec<f64> {
    let mut removals: Vec<f64> = heads_of(step).filter_map(|head| head.number("removal")).collect();
    removals.sort_by(|a, b| b.total_cmp(a));
    removals
}

/// Mean divergence over the pairs of heads of a layer.
fn divergence(step: &StepAnalysis) -> Option<f64> {
    let above_diagonal = step
        .decoder()
        .flat_map(|attention| attention.divergence.iter().enumerate().flat_map(|(h, row)| row.iter().skip(h + 1)));
    mean(&above_diagonal.copied().collect::<Vec<f64>>())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| mean_of_checked(values))
}

#[cfg(test)]
mod tests {
    use runs::heads::{AttentionAnalysis, AttentionSite, MeasureValue, Tells, Unit};

    use super::*;

    fn measure(key: &str, across: OfRun, parts: &[&str]) -> MeasureInfo {
        MeasureInfo {
            key: key.into(),
            title: key.into(),
            glossary: String::new(),
            reads: None,
            range: None,
            unit: Unit::Share,
            tells: Tells::Reads,
            across,
            parts: parts.iter().map(|part| part.to_string()).collect(),
        }
    }

    fn step(removals: [f64; 2], registers: [[f64; 2]; 2], divergence: f64) -> StepAnalysis {
        let head = |h: usize| HeadMeasures {
            measures: [
                ("removal".to_string(), removals[h].into()),
                ("entropy".to_string(), (removals[h] / 2.0).into()),
                ("needed".to_string(), MeasureValue::Parts(registers[h].to_vec())),
            ]
            .into(),
            flags: if removals[h] < 0.01 { vec![Flag::Dead] } else { vec![] },
            ..Default::default()
        };
        let divergence = vec![vec![0.0, divergence], vec![divergence, 0.0]];
        let attention = AttentionAnalysis {
            site: AttentionSite::Decoder,
            layer: 0,
            heads: vec![head(0), head(1)],
            divergence,
            maps: None,
        };
        let encoder = AttentionAnalysis { site: AttentionSite::Encoder, ..attention.clone() };
        StepAnalysis { step: 5, scores: Default::default(), answers: None, attentions: vec![attention, encoder] }
    }

    /// Which head is which does not matter, and encoders do not count.
    #[test]
    fn runs_are_compared_by_rank_and_part() {
        let one = step([0.0, 0.4], [[0.9, 0.1], [0.2, 0.3]], 0.2);
        let other = step([0.6, 0.2], [[0.1, 0.7], [0.8, 0.1]], 0.4);
        let measures = [
            measure("entropy", OfRun::Mean, &[]),
            measure("needed", OfRun::Greatest, &["register 0", "register 1"]),
            measure("induction", OfRun::Greatest, &[]),
        ];
        let across = across_runs(&measures, &[&one, &other]).unwrap();
        let spread = |mean, minimum, maximum| Spread { mean, minimum, maximum };
        assert_eq!((across.runs, across.heads), (2, 2));
        assert_eq!(across.flags[&Flag::Dead], spread(0.5, 0.0, 1.0));
        assert_eq!(across.flags[&Flag::Sink], spread(0.0, 0.0, 0.0));
        assert_eq!(across.removal_by_rank, [spread(0.5, 0.4, 0.6), spread(0.1, 0.0, 0.2)]);
        let near =
            |a: Spread, b: Spread| (a.mean - b.mean).abs() < 1e-12 && a.minimum == b.minimum && a.maximum == b.maximum;
        let best = &across.measures["needed"];
        assert!(near(best[0], spread(0.85, 0.8, 0.9)) && near(best[1], spread(0.5, 0.3, 0.7)), "{best:?}");
        assert!(near(across.divergence.unwrap(), spread(0.3, 0.2, 0.4)));
        assert!(near(across.measures["entropy"][0], spread(0.15, 0.1, 0.2)));
        assert_eq!((across.measures.get("induction"), across_runs(&measures, &[])), (None, None));
    }

    #[test]
    fn measures_are_described_once_for_an_arm() {
        let run = |pair, measures| RunHeads {
            pair,
            directory: String::new(),
            analysis: Some(HeadAnalysis {
                schema_version: SCHEMA_VERSION,
                computed_from: String::new(),
                name: "h2".into(),
                seed: pair,
                task: "registers".into(),
                layers: 1,
                heads: 2,
                kv_heads: 2,
                d_head: 4,
                causal: true,
                samples: 1,
                scored: 1,
                measures,
                roles: vec![],
                alike: vec![],
                shown: vec![],
                steps: vec![step([0.0, 0.4], [[0.9, 0.1], [0.2, 0.3]], 0.2)],
                pruning: None,
            }),
            problem: None,
        };
        let described = vec![measure("entropy", OfRun::Mean, &[]), measure("removal", OfRun::Greatest, &[])];
        let arm = of_arm("h2", "2 heads", vec![run(0, described.clone()), run(1, described.clone())]);
        assert_eq!(arm.measures, described);
        assert!(arm.runs.iter().all(|run| run.analysis.as_ref().unwrap().measures.is_empty()));
        assert_eq!(arm.last.unwrap().measures["removal"][0].mean, 0.4);
    }
}
