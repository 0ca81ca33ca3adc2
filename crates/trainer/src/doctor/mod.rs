//! The debugging chain as a program: the setting, a run's weights, then shapes, values at every node, masks and leaks, then
//! data, gradients and training, then what must make no difference.
//!
//! A check is a function that says what it saw and, where something is wrong, the likely cause and the fix. [`CHECKS`] is the
//! chain in its order: what fails later may follow from what failed earlier. Most act on an [`Examination`] of a
//! [`Subject`], so that a model with a mistake in it can be examined too: the tests do so for each check.

mod batches;
mod deviation;
mod diagnosis;
mod effort;
mod examination;
mod finding;
mod head_values;
mod leaks;
mod learning;
mod masks;
mod nodes;
mod program;
mod sameness;
mod setting;
mod shapes;
mod stream_values;
mod subject;
mod weights;

pub use diagnosis::Diagnosis;
pub use effort::Effort;
pub use examination::Examination;
pub use finding::{Checked, Finding};
pub use program::{Headcount, Program};
pub use setting::Setting;
pub use shapes::{NodeShape, table as node_shapes};
pub use subject::{Inputs, Pass, Subject, SubjectError};
pub use weights::Trained;

/// A check of the chain.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What holds where it is ok.
    pub meaning: &'static str,
    /// Whether nothing after it is worth a look where it fails.
    pub ends_the_chain: bool,
    look: Look,
}

/// What a check looks at.
enum Look {
    Setting(fn(&Setting) -> Checked),
    Weights(fn(&Trained) -> Checked),
    Model(fn(&Examination) -> Result<Checked, SubjectError>),
}

/// Every check in order: first of the setting, then of a run's weights, then of the model.
pub const CHECKS: &[Check] = &[
    Check::setting("config", setting::config, "the config is complete, and its sizes divide as they must"),
    Check::setting("environment", setting::environment, "the backend is in this build and finds a device"),
    Check::setting("memory", setting::memory, "training fits into the memory that is free"),
    Check::setting("test samples", setting::test_samples, "hardly any sample of the test set is in training too"),
    // Everything else would follow from a weight that is no number.
    Check::weights("finite weights", weights::finite, "every weight of the checkpoint is a number").ending_the_chain(),
    Check::weights("dead weights", weights::dead, "every column of every weight was trained"),
    Check::weights("heads", weights::heads, "heads of a layer read differently, once they are trained"),
    Check::model("shapes", shapes::shapes, "every node of a forward pass has the shape that the config says"),
    Check::model(
        "inputs",
        batches::inputs,
        "batches hold each sample's own tokens, within the vocabulary, and its padding",
    ),
    Check::model(
        "targets",
        batches::targets,
        "each scored position has its own sample's target, the one that the task defines",
    ),
    Check::model(
        "embedding",
        stream_values::embedding,
        "each token has its own row of the embedding, to which its position is added",
    ),
    Check::model(
        "stream",
        stream_values::stream,
        "each attention reads the norm of the residual stream, and the logits that of its end",
    ),
    Check::model(
        "projections",
        stream_values::projections,
        "queries, keys, values and outputs are their input times their weight",
    ),
    Check::model("split", head_values::split, "head h is columns h·K to (h+1)·K of a projection, position by position"),
    Check::model(
        "scores",
        head_values::scores,
        "scores are query · key, scaled as configured, by 1/sqrt(d_head) unless set, each query head against its group's keys",
    ),
    Check::model(
        "mask",
        masks::mask,
        "forbidden connections have weight 0, all others more, however large the scores are",
    ),
    Check::model(
        "rows",
        masks::rows,
        "each row of a map is the softmax over the keys that it may read, so it sums to 1",
    ),
    Check::model(
        "context",
        head_values::context,
        "a head's context is the average of its group's values under its map",
    ),
    Check::model("merge", head_values::merge, "contexts are laid side by side in the order of their heads"),
    Check::model(
        "empty row",
        masks::empty_row,
        "a position that may read nothing gets a zero map and context, all gradients finite",
    ),
    Check::model("future", leaks::future, "changing a token moves no earlier output"),
    Check::model("samples", leaks::samples, "changing one sample moves no other"),
    Check::model("padding", leaks::padding, "what stands in padding moves no output elsewhere"),
    Check::model(
        "untrained loss",
        learning::untrained_loss,
        "an untrained model knows nothing: its loss is near ln(classes)",
    ),
    Check::model("reach", learning::reach, "every parameter gets a gradient"),
    Check::model("gradients", learning::gradients, "gradients are what the loss changes by when a parameter is moved"),
    Check::model(
        "accumulation",
        learning::accumulation,
        "micro-batches of unequal size add up to the gradient of the whole batch",
    ),
    Check::model("overfit", learning::overfit, "a few samples can be learnt by heart"),
    Check::model("dropout", sameness::dropout, "dropout acts in training and not in evaluation"),
    Check::model("head order", sameness::head_order, "renumbering the heads changes nothing"),
    Check::model(
        "decoding",
        sameness::decoding,
        "reading piece by piece with a cache gives what reading the whole gives",
    ),
    Check::model("backend", sameness::backend, "logits and gradients are those of flex"),
];

impl Check {
    const fn setting(name: &'static str, look: fn(&Setting) -> Checked, meaning: &'static str) -> Self {
        Self { name, meaning, ends_the_chain: true, look: Look::Setting(look) }
    }

    const fn weights(name: &'static str, look: fn(&Trained) -> Checked, meaning: &'static str) -> Self {
        Self { name, meaning, ends_the_chain: false, look: Look::Weights(look) }
    }

    const fn model(
        name: &'static str,
        look: fn(&Examination) -> Result<Checked, SubjectError>,
        meaning: &'static str,
    ) -> Self {
        Self { name, meaning, ends_the_chain: false, look: Look::Model(look) }
    }

    const fn ending_the_chain(self) -> Self {
        Self { ends_the_chain: true, ..self }
    }

    /// What it finds in a setting; none where it looks at something else.
    pub fn of_setting(&self, setting: &Setting) -> Option<Finding> {
        let Look::Setting(look) = self.look else { return None };
        Some(self.found(look(setting)))
    }

    /// What it finds in a run's weights; none where it looks at something else.
    pub fn of_weights(&self, trained: &Trained) -> Option<Finding> {
        let Look::Weights(look) = self.look else { return None };
        Some(self.found(look(trained)))
    }

    /// What it finds in a model; none where it looks at something else.
    pub fn of_model(&self, examination: &Examination) -> Option<Finding> {
        let Look::Model(look) = self.look else { return None };
        Some(self.found(look(examination).unwrap_or_else(|error| {
            Checked::failed(
                format!("could not be carried out: {error}"),
                "the model refuses an input that its config allows",
                "compare the sizes in the message with the table of shapes",
            )
        })))
    }

    fn found(&self, outcome: Checked) -> Finding {
        Finding { check: self.name, meaning: self.meaning, outcome }
    }
}
