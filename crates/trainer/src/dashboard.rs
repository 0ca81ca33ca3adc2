//! The live dashboard of burn-train on a terminal (`--tui`): curves of loss and accuracy, progress, and a key to stop.

use std::sync::Arc;

use burn::train::Interrupter;
use burn::train::logger::TrainingProgressLogger;
use burn::train::metric::{
    MetricAttributes, MetricDefinition, MetricEntry, MetricId, NumericAttributes, NumericEntry, SerializedEntry,
};
use burn::train::renderer::tui::TuiMetricsRendererWrapper;
use burn::train::renderer::{MetricState, MetricsRenderer, MetricsRendererTraining};

use crate::batch::Tally;
use crate::observer::{Observer, Plan, Stepped};

/// Feeds burn-train's terminal renderer. A whole run is one epoch to it.
pub struct Dashboard {
    renderer: TuiMetricsRendererWrapper,
    plan: Plan,
    step: u64,
}

const LOSS: &str = "Loss (nats)";
const ACCURACY: &str = "Accuracy";

impl Dashboard {
    /// Takes over the terminal until it is dropped; its stop key acts through `interrupter`.
    pub fn new(interrupter: Interrupter) -> Self {
        let mut renderer = TuiMetricsRendererWrapper::new(interrupter, None);
        for (name, higher_is_better) in [(LOSS, false), (ACCURACY, true)] {
            renderer.register_metric(MetricDefinition {
                metric_id: MetricId::new(Arc::new(name.to_string())),
                name: Arc::new(name.to_string()),
                description: None,
                attributes: MetricAttributes::Numeric(NumericAttributes { unit: None, higher_is_better }),
            });
        }
        Self { renderer, plan: Plan { title: String::new(), steps: 0, first_step: 0 }, step: 0 }
    }
}

impl Observer for Dashboard {
    fn start(&mut self, plan: &Plan) {
        self.plan = plan.clone();
        self.renderer.start(1, 0, Some(plan.steps as usize), Some(&plan.title));
        self.renderer.start_split("train", plan.steps as usize);
        self.renderer.update_split(plan.first_step as usize);
    }

    fn stepped(&mut self, stepped: &Stepped) {
        self.step = stepped.step;
        self.renderer.update_train(state(LOSS, stepped.loss));
        self.renderer.update_train(state(ACCURACY, stepped.accuracy));
        self.renderer.update_split(stepped.step as usize);
    }

    fn validated(&mut self, _step: u64, tally: &Tally) {
        self.renderer.start_split("valid", 1);
        self.renderer.update_split(1);
        self.renderer.update_valid(state(LOSS, tally.mean_loss()));
        self.renderer.update_valid(state(ACCURACY, tally.accuracy()));
        self.renderer.end_split();
        self.renderer.start_split("train", self.plan.steps as usize);
        self.renderer.update_split(self.step as usize);
    }

    fn end(&mut self) {
        TrainingProgressLogger::end(&mut self.renderer);
    }
}

fn state(name: &str, value: f64) -> MetricState {
    let text = SerializedEntry::new(format!("{value:.4}"), value.to_string());
    let entry = MetricEntry::new(MetricId::new(Arc::new(name.to_string())), text);
    MetricState::Numeric(entry, Some(NumericEntry::Value(value)))
}
