//! `trainer runs`.

use super::*;

#[test]
fn runs_are_listed_and_verified() {
    let place = tiny();
    let arguments = "--config tiny.toml --quiet --set train.steps=20";
    place.run(&format!("{arguments} --seed 0")).expect(0);
    place.run(&format!("{arguments} --seed 1 --set train.snapshots=2")).expect(0);
    place
        .run("--config tiny.toml --quiet --seed 2 --set train.lr=1000 --set train.clip_norm=0 --set train.warmup=0")
        .expect(4);
    let list = place.run("runs").expect(0);
    assert!(list.stdout.contains("3 runs: 2 done, 1 failed; "), "{list:?}");
    assert_eq!(list.stdout.matches("20/20").count(), 2, "{list:?}");
    let verified = place.run("runs --verify").expect(0);
    assert!(verified.stdout.ends_with("; checksums compared\n"), "{verified:?}");

    // One bit of a snapshot: a list does not see it, its checksum does.
    let snapshot = fs::read_dir(place.path().join("runs")).unwrap().find_map(|entry| {
        let run = RunDirectory::at(entry.unwrap().path());
        let name = run.path().file_name().unwrap().to_str().unwrap().to_string();
        name.contains("-seed1-").then(|| run.snapshots().path(20))
    });
    let snapshot = snapshot.unwrap();
    let mut bytes = fs::read(&snapshot).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 4;
    fs::write(&snapshot, bytes).unwrap();
    place.run("runs").expect(0);
    let damaged = place.run("runs --verify").expect(3);
    assert!(
        damaged.stdout.contains("snapshots/step-20.safetensors: the weights don't have the fingerprint"),
        "{damaged:?}"
    );
    let json = place.run("runs --verify --json").expect(3);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["totals"]["damaged"], &json["totals"]["runs"]), (&1.into(), &3.into()));
    let states: Vec<&str> = json["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["done", "damaged", "failed"]);

    let nothing = place.run("runs nowhere").expect(2);
    assert!(nothing.stderr.contains("nowhere"), "{nothing:?}");
}
