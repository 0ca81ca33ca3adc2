//! Where files are written, each test named after a report elsewhere: never through a link, never over what a run keeps.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::*;

fn trained() -> Workplace {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.run("--config small.toml --quiet --set train.steps=20 --set train.snapshots=2").expect(0);
    place
}

/// kakehashi#800: a link that is named like what is written leads elsewhere.
#[test]
fn kakehashi_800_nothing_is_written_through_a_link() {
    let place = trained();
    let run = place.only_run("runs");
    let theirs = place.path().join("theirs");
    let refused = |arguments: &str| {
        let ran = place.run(arguments).expect(1);
        assert!(ran.stderr.contains("link"), "{arguments}: {ran:?}");
        assert_eq!(fs::read(&theirs).unwrap(), b"theirs", "{arguments}");
    };
    fs::write(&theirs, "theirs").unwrap();

    symlink(&theirs, run.path().join("step-20.safetensors")).unwrap();
    refused(&format!("export {}", run.path().display()));
    fs::remove_file(run.path().join("step-20.safetensors")).unwrap();
    place.run(&format!("export {}", run.path().display())).expect(0);

    fs::create_dir(place.path().join("growth")).unwrap();
    let growth = "bench --growth growth --d-model 8 --layers 1 --heads 2 --batch 3 --seq 5 --vocab 7 --threads 1 --sweep heads=1 \
        --seconds 0.01";
    symlink(&theirs, place.path().join("growth/growth.csv")).unwrap();
    refused(growth);
}

/// The same of folders: what is written into a link to one lands elsewhere.
#[test]
fn kakehashi_800_nothing_is_written_into_a_linked_folder() {
    let place = trained();
    let run = place.only_run("runs");
    let at = |name: &str| place.path().join(name);
    symlink(run.path(), at("linked")).unwrap();
    let before = files(run.path());
    for arguments in ["report linked", "report linked/", "report ./linked/.", "heads linked"] {
        let ran = place.run(arguments).expect(1);
        assert!(ran.stderr.contains("link"), "{arguments}: {ran:?}");
    }
    assert_eq!(files(run.path()), before);

    fs::create_dir(at("theirs")).unwrap();
    symlink(at("theirs"), at("growth")).unwrap();
    let growth = "bench --growth growth/ --d-model 8 --layers 1 --heads 2 --batch 3 --seq 5 --vocab 7 --threads 1 --sweep heads=1 --seconds 0.01";
    assert!(place.run(growth).expect(1).stderr.contains("link"));
    symlink(at("theirs"), at("runs/test")).unwrap();
    let experiment = "baseline = \"h1\"\nregime = \"split\"\nseeds = 1\nwhy_seeds = \"it is a test\"\n[metric]\nmargin = 0.02\n\
        [base]\nconfig = \"small.toml\"\ntrain.steps = 20\n[grid]\n\"model.heads\" = [1, 2]\n";
    place.file("test.toml", experiment);
    assert!(place.run("compare test.toml").expect(1).stderr.contains("link"));
    assert_eq!(fs::read_dir(at("theirs")).unwrap().count(), 0);
    // A folder of runs may be one: people keep theirs on another disk.
    symlink(at("theirs"), at("scratch")).unwrap();
    place.run("--config small.toml --quiet --set train.steps=20 --out scratch").expect(0);
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// burn#5479: another spelling of a path leads to the same file.
#[test]
fn burn_5479_an_export_overwrites_nothing_of_a_run() {
    let place = trained();
    let run = place.only_run("runs");
    let name = run.path().file_name().unwrap().to_str().unwrap();
    place
        .run("--config small.toml --quiet --set train.steps=20 --seed 1 --set train.snapshots=2 --out other")
        .expect(0);
    let other = place.only_run("other");
    let before = (result_files(&run), result_files(&other));
    symlink(run.path().join("checkpoints"), place.path().join("elsewhere")).unwrap();
    let absolute = run.path().join("checkpoints/step-20/model.safetensors").display().to_string();
    let others = other.path().join("checkpoints/step-20/optimiser.safetensors").display().to_string();
    for output in [
        format!("runs/{name}/checkpoints/step-20/model.safetensors"),
        format!("./runs/{name}/checkpoints/step-20/model.safetensors"),
        format!("runs/../runs/{name}/./checkpoints/step-20/optimiser.safetensors"),
        format!("runs/{name}/checkpoints/new.safetensors"),
        format!("runs/{name}/snapshots/step-20.safetensors"),
        "elsewhere/step-20/model.safetensors".into(),
        absolute,
        others,
    ] {
        for run in [format!("runs/{name}"), run.path().display().to_string()] {
            let ran = place.run(&format!("export {run} --output {output}")).expect(2);
            assert!(ran.stderr.contains("nothing else is written there"), "{output}: {ran:?}");
        }
    }
    assert_eq!((result_files(&run), result_files(&other)), before);
    place.run("runs --verify runs other").expect(0);
    place.run(&format!("export runs/{name} --output runs/{name}/checkpoints/../mine.safetensors")).expect(0);
}
