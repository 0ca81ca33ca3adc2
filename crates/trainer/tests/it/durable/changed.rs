//! A config that changed, and numbers that are gone.

use data::TrainingOrder;
use runs::{Config, Status, Summary};

use super::*;

/// Another config begins a run beside, and says in what it differs; an edited one is refused, key by key.
#[test]
fn a_config_that_changed_is_named_key_by_key() {
    let place = tiny();
    let arguments = "--config tiny.toml --set train.steps=20";
    place.run(arguments).expect(0);
    let run = place.only_run("runs");
    let longer = place.run("--config tiny.toml --set train.steps=30 --set train.lr=0.01").expect(0);
    for part in ["beside runs/tiny-seed0-", "train.steps: 20 there, 30 here; train.lr: 0.003 there, 0.01 here"] {
        assert!(longer.stderr.contains(part), "{part}\n{longer:?}");
    }
    assert!(!place.run("--config tiny.toml --set train.steps=20 --force").expect(0).stderr.contains("going on"));

    let before = result_files(&run);
    let text = fs::read_to_string(run.config_path()).unwrap();
    fs::write(run.config_path(), text.replace("heads = 2", "heads = 4")).unwrap();
    for more in ["", "--force"] {
        let ran = place.run(&format!("{arguments} {more}")).expect(1);
        assert!(ran.stderr.contains("(model.heads: 4 there, 2 here)"), "{ran:?}");
    }
    fs::write(run.config_path(), "junk").unwrap();
    assert!(place.run(arguments).expect(1).stderr.contains("(it can't be read)"));
    assert_eq!(result_files(&run), before);
    // Only written otherwise, it is the same config.
    fs::write(run.config_path(), format!("# mine\n{text}")).unwrap();
    assert!(place.run(arguments).expect(0).stdout.contains("is done already"));
}

/// The update that would have made the weights useless is not done: what is on disk is finite, and both it and the samples at
/// fault are named.
#[test]
fn what_is_not_finite_stops_the_run_before_the_update() {
    let place = tiny();
    let arguments = "--config tiny.toml --quiet --set train.lr=1000 --set train.clip_norm=0 --set train.warmup=0 \
        --set train.schedule=constant --set train.checkpoint_every=1";
    let ran = place.run(arguments).expect(4);
    let run = place.only_run("runs");
    let Status::Diverged { step } = Summary::read(&run.summary_path()).unwrap().status else { panic!("{ran:?}") };
    let config = Config::load(&run.config_path(), &[]).unwrap();
    let mut order = TrainingOrder::new(&config.task.sets, config.seed);
    let samples: Vec<u64> = (0..2).flat_map(|micro| order.indices(step - 1, micro, 2, 4)).collect();
    let words = ran.stderr.split("training samples of the step: ").nth(1).unwrap().lines().next().unwrap();
    for sample in samples {
        assert!(words.split(", ").any(|word| word == sample.to_string() || word.contains(" to ")), "{sample}: {words}");
    }
    let checkpoint = run.checkpoints().latest().unwrap().unwrap().checkpoint;
    assert_eq!(checkpoint.step, step - 1);
    assert!(
        ran.stderr.contains(&format!(
            "the last good checkpoint is runs/{}",
            run.path().file_name().unwrap().to_str().unwrap()
        ))
    );
    for (path, tensor) in checkpoint.model {
        assert!(tensor.values.iter().all(|value| value.is_finite()), "{path}");
    }
}
