//! The learning rate of each optimiser step.

use runs::{Schedule, ScheduleBy, TrainConfig};

/// The learning rate of optimiser step `step`, counted from 1.
///
/// It rises linearly and reaches `lr` at step `warmup`; then it follows half a cosine that reaches `min_lr` just after the
/// last step (Loshchilov 2017, equation 5, without restarts), or stays. `steps_per_pass` is the length of a pass over a
/// fixed training set: with `schedule_by = "pass"` the cosine moves once a pass, as PyTorch's `CosineAnnealingLR` stepped
/// after each epoch.
pub fn learning_rate(config: &TrainConfig, steps_per_pass: Option<u64>, step: u64) -> f64 {
    let done = step.saturating_sub(1);
    if step < config.warmup {
        return config.lr * step as f64 / config.warmup as f64;
    }
    if config.schedule == Schedule::Constant {
        return config.lr;
    }
    let progress = match (config.schedule_by, steps_per_pass) {
        (ScheduleBy::Pass, Some(pass)) => (done / pass) as f64 / config.steps.div_ceil(pass) as f64,
        _ => {
            let warm = config.warmup.saturating_sub(1);
            (done - warm) as f64 / config.steps.saturating_sub(warm).max(1) as f64
        }
    };
    let progress = progress.min(1.0); // a cosine rises again past its end
    config.min_lr + (config.lr - config.min_lr) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> TrainConfig {
        TrainConfig { steps: 2000, warmup: 1000, lr: 0.5, min_lr: 0.1, ..Default::default() }
    }

    /// Lightning#1476: accumulation changes nothing; the peak is at optimiser step `warmup`.
    #[test]
    fn lightning_1476_peak_is_at_the_optimiser_step_of_the_warmup() {
        let config = TrainConfig { accumulate: 16, ..config() };
        let rates: Vec<f64> = (1..=2000).map(|step| learning_rate(&config, None, step)).collect();
        let peak = rates.iter().cloned().fold(0.0, f64::max);
        assert_eq!(rates.iter().position(|&rate| rate == peak), Some(999));
        assert_eq!(peak, 0.5);
        assert_eq!(rates[0], 0.5 / 1000.0);
    }

    #[test]
    fn cosine_falls_to_the_minimum_and_never_rises_again() {
        let rates: Vec<f64> = (1000..=2500).map(|step| learning_rate(&config(), None, step)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] <= pair[0]));
        assert!((rates[1000] - 0.1) < 1e-5 && rates[1500] == 0.1, "{} {}", rates[1000], rates[1500]);
    }

    #[test]
    fn without_warmup_the_first_step_has_the_full_rate() {
        let config = TrainConfig { warmup: 0, ..config() };
        assert_eq!(learning_rate(&config, None, 1), 0.5);
    }

    #[test]
    fn constant_stays() {
        let config = TrainConfig { schedule: Schedule::Constant, ..config() };
        assert_eq!(learning_rate(&config, None, 1000), 0.5);
        assert_eq!(learning_rate(&config, None, 2000), 0.5);
    }

    /// optimizer = torch.optim.AdamW([p], lr=1e-3)
    /// schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100, eta_min=0.0)
    /// for epoch in range(26): print(optimizer.param_groups[0]["lr"]); schedule.step()
    #[test]
    fn by_pass_follows_pytorch_stepped_after_each_epoch() {
        let config = TrainConfig {
            steps: 31_300,
            warmup: 0,
            lr: 1e-3,
            min_lr: 0.0,
            schedule_by: ScheduleBy::Pass,
            ..Default::default()
        };
        for (step, expected) in
            [(1, 1e-3), (313, 1e-3), (314, 0.000_999_753_280_182_866_5), (7826, 0.000_853_553_390_593_273_8)]
        {
            let rate = learning_rate(&config, Some(313), step);
            assert!((rate - expected).abs() < 1e-12, "step {step}: {rate}");
        }
    }
}
