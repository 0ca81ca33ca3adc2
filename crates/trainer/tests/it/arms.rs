//! What `configs/h8.toml` and `configs/h1.toml` promise.

use data::Split;
use data::metrics::ACCURACY;
use runs::{Config, Manifest, Summary};

use crate::support::*;

#[test]
fn eight_heads_solve_registers_and_one_head_does_not() {
    let [one, eight] = ["h1", "h8"].map(|name| Config::load(&configs().join(format!("{name}.toml")), &[]).unwrap());
    let mut difference = eight.clone();
    (difference.name, difference.model.heads) = (one.name.clone(), 1);
    assert_eq!(difference, one, "the two configs must differ in their heads alone");

    let place = Workplace::new();
    let arguments = |name| format!("--config {}/{name}.toml --out {name} --threads 1", configs().display());
    let children = ["h1", "h8"].map(|name| place.start(&arguments(name)));
    let [_, shown] = children.map(|child| finish(child).expect(0));
    assert!(shown.stdout.contains("h8 seed 0, validation after 800 steps: accuracy 0.9"), "{}", shown.stdout);
    // Without a terminal a plain line at each evaluation: step 0, then every 50 of 800.
    let lines: Vec<&str> = shown.stderr.lines().filter(|line| line.starts_with("step ")).collect();
    assert_eq!(lines.len(), 17, "{}", shown.stderr);
    for part in ["step 800/800", "train loss", "validation loss", "accuracy", "tokens/s", "0:00 left"] {
        assert!(lines[16].contains(part), "{}", lines[16]);
    }

    let [one, eight] = ["h1", "h8"].map(|name| place.only_run(name));
    let accuracy = |run| Summary::read(run).unwrap().validation.unwrap().number(&ACCURACY);
    let (low, high) = (accuracy(&one.summary_path()), accuracy(&eight.summary_path()));
    assert!(high >= 0.98, "8 heads: {high}");
    assert!((0.50..=0.70).contains(&low), "1 head: {low}");

    let [first, second] = [&one, &eight].map(|run| Manifest::read(&run.manifest_path()).unwrap());
    assert_eq!(first.fingerprints, second.fingerprints);
    assert_eq!(first.parameters, second.parameters);
    assert_eq!(first.flops_per_step, second.flops_per_step);
    assert_eq!(first.tokens_per_step, 64 * 32);

    // The summary is the last line of the curve, and every step is there.
    let lines = metrics(&eight);
    let last = lines.iter().rfind(|line| line.split == Split::Validation).unwrap();
    assert_eq!((last.step, last.scores.number(&ACCURACY), last.tokens), (800, high, 800 * 64 * 32));
    assert_eq!(losses(&eight).len(), 800);
}

/// The fingerprints can tell runs apart: another seed has other data and other weights.
#[test]
fn another_seed_has_other_fingerprints() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let prints = [0, 1].map(|seed| {
        place.run(&format!("--config small.toml --set train.steps=0 --seed {seed} --out {seed}")).expect(0);
        Manifest::read(&place.only_run(&seed.to_string()).manifest_path()).unwrap().fingerprints
    });
    assert_ne!(prints[0].data, prints[1].data);
    assert_ne!(prints[0].weights, prints[1].weights);
}
