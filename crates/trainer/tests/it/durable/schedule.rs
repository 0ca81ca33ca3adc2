//! What is only looked at changes nothing.

use runs::Config;

use super::*;

/// Evaluating, saving and logging more or less often gives the same training, bit for bit.
#[test]
fn evaluating_more_often_changes_no_training_loss() {
    let train = |overrides: [&str; 3]| {
        let overrides = overrides.map(String::from);
        let config = Config::parse_with(TINY, "tiny.toml", &overrides).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (run, _) = train_here(&config, folder.path());
        let last = run.checkpoints().load(100).unwrap();
        (losses(&run), last.model, last.optimiser)
    };
    let often = train(["train.steps=100", "train.eval_every=10", "train.checkpoint_every=1"]);
    let seldom = train(["train.steps=100", "train.eval_every=50", "train.checkpoint_every=1000"]);
    assert_eq!(often.0.len(), 100);
    assert!(often == seldom);
}
