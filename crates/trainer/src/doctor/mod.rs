//! The debugging chain as a program: shapes, then values at every node, then masks and leaks, then data, gradients and
//! training, then what must make no difference.
//!
//! A check is a function of an [`Examination`] that says what it saw and, where something is wrong, the likely cause and
//! the fix. [`CHECKS`] is the chain in its order: what fails later may follow from what failed earlier. What they act on
//! is a [`Subject`], so that a model with a mistake in it can be examined too: the tests do so for each check.

mod compare;
mod data_checks;
mod effort;
mod environment;
mod examination;
mod heads;
mod leaks;
mod learning;
mod masks;
mod nodes;
mod program;
mod report;
mod sameness;
mod shapes;
mod stream;
mod subject;
mod trained;

pub use effort::Effort;
pub use environment::{before, config_refused};
pub use examination::Examination;
pub use program::{Headcount, Program};
pub use report::{Finding, Outcome, Report};
pub use shapes::Row;
pub use subject::{Inputs, Pass, Subject, SubjectError};
pub use trained::check_weights;

/// A check of the chain.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What holds where it is ok.
    pub meaning: &'static str,
    run: fn(&Examination) -> Result<Outcome, SubjectError>,
}

macro_rules! checks {
    ($($name:literal => $run:path: $meaning:literal),+ $(,)?) => {
        /// Every check of a model, in order.
        pub const CHECKS: &[Check] = &[$(Check { name: $name, meaning: $meaning, run: $run }),+];
    };
}

checks! {
    "shapes" => shapes::shapes: "every node of a forward pass has the shape that the config says",
    "inputs" => data_checks::inputs: "batches hold each sample's own tokens, within the vocabulary, and its padding",
    "targets" => data_checks::targets: "each scored position has its own sample's target, the one that the task defines",
    "embedding" => stream::embedding: "each token has its own row of the embedding, to which its position is added",
    "stream" => stream::stream: "each attention reads the norm of the residual stream, and the logits that of its end",
    "projections" => stream::projections: "queries, keys, values and outputs are their input times their weight",
    "split" => heads::split: "head h is columns h·K to (h+1)·K of a projection, position by position",
    "scores" => heads::scores: "scores are query · key / sqrt(d_head), each query head against its group's keys",
    "mask" => masks::mask: "forbidden connections have weight 0, all others more, however large the scores are",
    "rows" => masks::rows: "each row of a map is the softmax over the keys that it may read, so it sums to 1",
    "context" => heads::context: "a head's context is the average of its group's values under its map",
    "merge" => heads::merge: "contexts are laid side by side in the order of their heads",
    "empty row" => masks::empty_row: "a position that may read nothing gets a zero map and context, all gradients finite",
    "future" => leaks::future: "changing a token moves no earlier output",
    "samples" => leaks::samples: "changing one sample moves no other",
    "padding" => leaks::padding: "what stands in padding moves no output elsewhere",
    "untrained loss" => learning::untrained_loss: "an untrained model knows nothing: its loss is near ln(classes)",
    "reach" => learning::reach: "every parameter gets a gradient",
    "gradients" => learning::gradients: "gradients are what the loss changes by when a parameter is moved",
    "accumulation" => learning::accumulation: "micro-batches of unequal size add up to the gradient of the whole batch",
    "overfit" => learning::overfit: "a few samples can be learnt by heart",
    "dropout" => sameness::dropout: "dropout acts in training and not in evaluation",
    "head order" => sameness::head_order: "renumbering the heads changes nothing",
    "decoding" => sameness::decoding: "reading piece by piece with a cache gives what reading the whole gives",
    "backend" => sameness::backend: "logits and gradients are those of flex",
}

impl Check {
    /// Carries the check out.
    pub fn run(&self, examination: &Examination) -> Finding {
        let outcome = (self.run)(examination).unwrap_or_else(|error| {
            Outcome::failed(
                format!("could not be carried out: {error}"),
                "the model refuses an input that its config allows",
                "compare the sizes in the message with the table of shapes",
            )
        });
        Finding { check: self.name, meaning: self.meaning, outcome }
    }
}
