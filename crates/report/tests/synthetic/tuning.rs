//! Experiments that choose learning rates.

use headcount_report::TunedExperiment;

use super::synthetic::{Kind, Made, declare, write};

/// As [`super::synthetic::make`], with tuning: `at` gives the kind for an arm and a learning rate, in the tuning and in the reported runs.
pub fn make_tuning(name: &str, head: &str, arms: &str, kind: impl Fn(&str, f64) -> Kind) -> Made {
    let made = declare(name, head, arms);
    for run in made.experiment.tuning_runs_in(&made.folder) {
        write(&run, kind(&run.arm, run.config.train.lr));
    }
    for run in TunedExperiment::read(made.experiment.clone(), &made.folder).runs() {
        write(&run, kind(&run.arm, run.config.train.lr));
    }
    made
}
