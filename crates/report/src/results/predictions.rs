//! What was predicted before the runs, and how that ended.

use runs::{
    Experiment,
    experiment::{Claim, Predicted},
};
use serde::{Deserialize, Serialize};
use statistics::prediction::{Fate, fate_of_better, fate_of_equivalent, fate_of_sufficient};

use super::question::{ArmVerdict, Findings, SweepAtLevel};

/// One prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// As the file has it: "sufficient = 4 where model.layers = 1".
    pub predicted: String,
    pub fate: Fate,
}

/// Every prediction of an experiment. Before a decision is due all are undecided.
pub(super) fn of(experiment: &Experiment, findings: &Findings) -> Vec<Prediction> {
    let of = |predicted: &Predicted| {
        let fate = fate(experiment, predicted, findings);
        Prediction { predicted: predicted.to_string(), fate }
    };
    experiment.predict.iter().map(of).collect()
}

fn fate(experiment: &Experiment, predicted: &Predicted, findings: &Findings) -> Fate {
    let is_about = |name: &str| experiment.arm(name).is_some_and(|arm| predicted.is_about(&arm.config));
    let about: Vec<&ArmVerdict> = findings.verdicts.iter().filter(|verdict| is_about(&verdict.arm)).collect();
    match &predicted.claim {
        Claim::Better { arm } => {
            // Of two arms the baseline may be predicted to be the better one.
            let own = about.iter().find(|verdict| verdict.arm == *arm);
            let other = about.iter().find(|verdict| verdict.against == *arm);
            match (own, other) {
                (Some(verdict), _) => fate_of_better(verdict.found.statement),
                (None, Some(verdict)) => fate_of_better(mirrored(verdict.found.statement)),
                (None, None) => Fate::Undecided,
            }
        }
        Claim::Equivalent { arm } => {
            let of = |verdict: &&&ArmVerdict| arm.as_ref().is_none_or(|arm| verdict.arm == *arm);
            all(about.iter().filter(of).map(|verdict| fate_of_equivalent(verdict.found.statement)))
        }
        Claim::Sufficient { value } => {
            let is_at = |sweep: &&SweepAtLevel| {
                let of_sweep = |name: &str| sweep.found.steps.iter().any(|step| step.name == name);
                experiment.arms.iter().any(|arm| of_sweep(&arm.label) && predicted.is_about(&arm.config))
                    && predicted.level.iter().all(|(key, told)| sweep.level.get(key).is_none_or(|own| own == told))
            };
            all(findings.sweeps.iter().filter(is_at).map(|sweep| fate_of_sufficient(*value, &sweep.found)))
        }
    }
}

/// Failed if any has, held if all have.
fn all(fates: impl Iterator<Item = Fate>) -> Fate {
    let fates: Vec<Fate> = fates.collect();
    if fates.contains(&Fate::Failed) {
        Fate::Failed
    } else if fates.is_empty() || fates.contains(&Fate::Undecided) {
        Fate::Undecided
    } else {
        Fate::Held
    }
}

fn mirrored(statement: statistics::Statement) -> statistics::Statement {
    use statistics::Statement::{Better, Worse};
    match statement {
        Better => Worse,
        Worse => Better,
        other => other,
    }
}
