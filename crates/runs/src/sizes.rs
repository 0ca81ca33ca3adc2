//! How many parameters a config's model has, and which width of its MLP gives as many.

use architecture::{ModelConfig, cost};

use crate::config::Config;

/// Trainable parameters of a config's model.
pub fn parameters(config: &Config) -> u64 {
    cost::parameters(&config.model, config.dims()).total()
}

/// The `model.d_ff` with which a config's model comes nearest to `target` parameters; `None` without an MLP, or where
/// even the narrowest MLP is more than half a unit too many.
pub fn nearest_d_ff(config: &Config, target: u64) -> Option<usize> {
    if !config.model.mlp || config.model.layers == 0 {
        return None;
    }
    let with = |d_ff| {
        let model = ModelConfig { d_ff: Some(d_ff), ..config.model.clone() };
        cost::parameters(&model, config.dims()).total()
    };
    let unit = with(2) - with(1);
    let fixed = with(1) - unit;
    // Rounded to nearest.
    let d_ff = (target.checked_sub(fixed)? + unit / 2) / unit;
    (d_ff > 0).then(|| usize::try_from(d_ff).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_width_is_within_half_a_unit_or_there_is_none() {
        let config = Config::parse("[task]\nkind = \"registers\"\n[model]\nheads = 1\n", "h1.toml").unwrap();
        let target = parameters(&config);
        assert_eq!(nearest_d_ff(&config, target), Some(256));
        assert_eq!(nearest_d_ff(&config, target + 64), Some(256));
        assert_eq!(nearest_d_ff(&config, target + 65), Some(257));
        assert_eq!(nearest_d_ff(&config, 10), None);
        let mut bare = config;
        bare.model.mlp = false;
        assert_eq!(nearest_d_ff(&bare, target), None);
    }
}
