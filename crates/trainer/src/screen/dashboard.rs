//! The live dashboard of burn-train on a terminal (`--tui`): a curve of each metric, progress, and a key to stop.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use burn::train::Interrupter;
use burn::train::logger::TrainingProgressLogger;
use burn::train::metric::{
    MetricAttributes, MetricDefinition, MetricEntry, MetricId, NumericAttributes, NumericEntry, SerializedEntry,
};
use burn::train::renderer::tui::TuiMetricsRendererWrapper;
use burn::train::renderer::{MetricState, MetricsRenderer, MetricsRendererTraining};
use data::metrics::{Better, METRICS, MetricKind, Scores};
use report::text::capital;

use crate::training::observer::{Observer, Plan, Stepped};

pub use terminal::restore as restore_terminal;

/// Feeds burn-train's terminal renderer. A whole run is one epoch to it.
pub struct Dashboard {
    /// None once its user has chosen to kill the run.
    renderer: Option<TuiMetricsRendererWrapper>,
    interrupter: Interrupter,
    plan: Plan,
    step: u64,
}

impl Dashboard {
    /// Takes over the terminal until it is dropped; its stop key acts through `interrupter`.
    pub fn new(interrupter: Interrupter) -> Self {
        terminal::remember();
        let mut renderer = TuiMetricsRendererWrapper::new(interrupter.clone(), None);
        for kind in METRICS {
            let name = Arc::new(name(kind));
            let higher_is_better = kind.better == Better::Higher;
            renderer.register_metric(MetricDefinition {
                metric_id: MetricId::new(name.clone()),
                name,
                description: None,
                attributes: MetricAttributes::Numeric(NumericAttributes { unit: None, higher_is_better }),
            });
        }
        terminal::keep_control_c();
        let plan = Plan::default();
        Self { renderer: Some(renderer), interrupter, plan, step: 0 }
    }

    fn show(&mut self, act: impl FnOnce(&mut TuiMetricsRendererWrapper)) {
        let Some(mut renderer) = self.renderer.take() else { return };
        // The renderer answers its kill key with a panic in whatever reports to it. That is here, between two steps, so
        // that stopping serves as well and saves what was done.
        if catch_unwind(AssertUnwindSafe(|| act(&mut renderer))).is_ok() {
            self.renderer = Some(renderer);
            return;
        }
        self.interrupter.stop(Some("killed"));
        close(renderer);
    }
}

fn close(renderer: TuiMetricsRendererWrapper) {
    if catch_unwind(AssertUnwindSafe(|| drop(renderer))).is_err() {
        // Killed, it panics once more before it waits for its thread, which gives the terminal back by itself.
        std::thread::sleep(Duration::from_millis(200));
        terminal::clear_rest();
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        if let Some(renderer) = self.renderer.take() {
            close(renderer);
        }
        terminal::forget();
    }
}

impl Observer for Dashboard {
    fn start(&mut self, plan: &Plan) {
        self.plan = plan.clone();
        self.step = plan.first_step;
        let Plan { title, steps, first_step, .. } = plan.clone();
        self.show(|renderer| {
            renderer.start(1, 0, Some(steps as usize), Some(&title));
            renderer.update_epoch(0); // it counts epochs from 1, this one included
            renderer.start_split("train", steps as usize);
            renderer.update_split(first_step as usize);
        });
    }

    fn stepped(&mut self, stepped: &Stepped) {
        self.step = stepped.step;
        self.show(|renderer| {
            stepped.scores.iter().for_each(|(kind, value)| renderer.update_train(state(kind, value)));
            renderer.update_split(stepped.step as usize);
        });
    }

    fn validated(&mut self, _step: u64, scores: &Scores) {
        let (steps, step) = (self.plan.steps as usize, self.step as usize);
        self.show(|renderer| {
            renderer.start_split("valid", 1);
            renderer.update_split(1);
            scores.iter().for_each(|(kind, value)| renderer.update_valid(state(kind, value)));
            renderer.end_split();
            renderer.start_split("train", steps);
            renderer.update_split(step);
        });
    }

    fn end(&mut self) {
        self.show(TrainingProgressLogger::end);
    }
}

/// As it stands over a curve, such as "Loss (nats)".
fn name(kind: &MetricKind) -> String {
    let name = capital(kind.words);
    if kind.unit_told().is_empty() { name } else { format!("{name} ({})", kind.unit) }
}

fn state(kind: &MetricKind, value: f64) -> MetricState {
    let text = SerializedEntry::new(format!("{value:.4}"), value.to_string());
    let entry = MetricEntry::new(MetricId::new(Arc::new(name(kind))), text);
    MetricState::Numeric(entry, Some(NumericEntry::Value(value)))
}

/// What the renderer leaves undone: Ctrl-C, and a terminal that can be used after the program was ended at once.
#[cfg(unix)]
mod terminal {
    use std::sync::Mutex;
    use std::time::Duration;

    use rustix::stdio::stdout;
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    use crate::screen::output::control;

    /// The terminal's settings before the dashboard took it over.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    pub fn remember() {
        set(tcgetattr(stdout()).ok());
    }

    pub fn forget() {
        set(None);
    }

    fn set(settings: Option<Termios>) {
        if let Ok(mut before) = BEFORE.lock() {
            *before = settings;
        }
    }

    /// The renderer's thread turns Ctrl-C into a key, which it then ignores; this makes it a signal again.
    pub fn keep_control_c() {
        for _ in 0..200 {
            match tcgetattr(stdout()) {
                Ok(mut settings) if !settings.local_modes.contains(LocalModes::ISIG) => {
                    settings.local_modes.insert(LocalModes::ISIG);
                    let _ = tcsetattr(stdout(), OptionalActions::Now, &settings);
                    return;
                }
                // Not yet.
                Ok(_) => std::thread::sleep(Duration::from_millis(5)),
                Err(_) => return,
            }
        }
    }

    /// Clears what stands after the cursor: the renderer's own last words, which it wrote before it moved back.
    pub fn clear_rest() {
        control("\x1b[J");
    }

    /// Gives the terminal back, for a program that ends without dropping its dashboard.
    pub fn restore() {
        let Ok(Some(before)) = BEFORE.lock().map(|mut before| before.take()) else { return };
        let _ = tcsetattr(stdout(), OptionalActions::Now, &before);
        // No mouse events, the ordinary screen, a visible cursor (xterm control sequences).
        control("\x1b[?1006l\x1b[?1015l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1049l\x1b[?25h");
    }
}

/// Elsewhere the renderer's own keys have to do.
#[cfg(not(unix))]
mod terminal {
    pub fn remember() {}
    pub fn forget() {}
    pub fn keep_control_c() {}
    pub fn clear_rest() {}
    pub fn restore() {}
}
