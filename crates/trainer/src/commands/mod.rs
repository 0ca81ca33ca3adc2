//! What each command takes, and what it does.

mod batch_tensors;
mod bench;
mod compare;
mod doctor;
mod dry_run;
mod export;
mod files;
mod generate;
mod heads;
mod import;
mod new;
mod plan;
mod report;
mod runs;
mod slurm;
mod tasks;
mod trace;
pub mod train;
mod trajectory;

use clap::Subcommand;

use crate::machine::exit::{Failure, Success};

macro_rules! commands {
    ($($(#[$about:meta])* $name:ident($arguments:path) => $run:path),+ $(,)?) => {
        /// What the program can do.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $($(#[$about])* $name($arguments)),+
        }

        impl Command {
            /// Carries the command out.
            ///
            /// # Errors
            /// What is said to its user, with the exit code.
            pub fn run(&self) -> Result<Success, Failure> {
                match self {
                    $(Self::$name(arguments) => $run(arguments)),+
                }
            }
        }
    };
}

// A command: one line here, in the order of the help, and one file with its arguments and its `run`.
commands! {
    /// Train the arms of an experiment over paired seeds and decide which is better.
    Compare(compare::CompareArguments) => compare::run,
    /// Make results, figures and report.html anew from run directories: of an experiment, or of one run.
    Report(report::ReportArguments) => report::run,
    /// Show what each attention head of a run reads and is worth.
    Heads(heads::HeadsArguments) => heads::run,
    /// Follow one sample through a run's model: queries, keys, values, scores, masks, weights, answer.
    Trace(trace::TraceArguments) => trace::run,
    /// Train one arm (the same as giving --config alone).
    Train(train::TrainArguments) => train::run,
    /// Look for what is wrong with a config's model, or with a run: shapes, masks, leaks, gradients, and more.
    Doctor(doctor::DoctorArguments) => doctor::run,
    /// Write a config and a sweep over heads for data of your own, and show what is in them.
    New(new::NewArguments) => new::run,
    /// List the tasks, or explain one and show samples of it.
    Tasks(tasks::TasksArguments) => tasks::run,
    /// Say what an experiment costs, and from a few pairs of a pilot how many it will need.
    Plan(plan::PlanArguments) => plan::run,
    /// Write, or submit, a Slurm job whose workers divide an experiment's runs among them.
    Slurm(slurm::SlurmArguments) => slurm::run,
    /// Decide over a table of results from elsewhere by the same rules: one line a run, as CSV.
    Import(import::ImportArguments) => import::run,
    /// List run directories: how far each is, how large, and whether it is damaged.
    Runs(runs::RunsArguments) => runs::run,
    /// Show what a run's model says to a prompt or a sample, or how fast it decodes.
    Generate(generate::GenerateArguments) => generate::run,
    /// Write a run's weights, config and an example into one safetensors file.
    Export(export::ExportArguments) => export::run,
    /// Measure a training step: time by part, share of the machine's matmul peak, memory.
    Bench(bench::BenchArguments) => bench::run,
}
