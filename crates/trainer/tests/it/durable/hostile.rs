//! Files made to do harm: nothing is written outside a run's folder, and nothing of them runs in a report.

use super::*;

/// Names become folders: none of them leads anywhere else.
#[test]
fn names_lead_nowhere() {
    let place = tiny();
    for name in ["../out", "/tmp/out", "..", ".hidden", "a/b", "a\\\\b", "", "a\\u0000b", "nul\\nl"] {
        place.file("bad.toml", format!("name = \"{name}\"\n{TINY}"));
        let ran = place.run("--config bad.toml").expect(2);
        assert!(ran.stderr.contains("name"), "{name}: {ran:?}");
        let head = format!("name = \"{name}\"\nbaseline = \"h1\"\nregime = \"split\"\n");
        let rest = "[metric]\nmargin = 0.02\n[base]\nconfig = \"tiny.toml\"\n[grid]\n\"model.heads\" = [1, 2]\n";
        place.file("test.toml", format!("{head}{rest}"));
        place.run("compare test.toml").expect(2);
        let arms = format!(
            "baseline = \"h1\"\nregime = \"split\"\n[metric]\nmargin = 0.02\n[base]\nconfig = \"tiny.toml\"\n[arms.h1]\nmodel.heads = 1\n[arms.\"{name}\"]\n"
        );
        place.file("test.toml", arms);
        place.run("compare test.toml").expect(2);
    }
    let entries: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(entries.len(), 3, "only what the test wrote: {entries:?}");
}

/// A link in a run's folder that leads to somebody else's files: refused, and they stay as they are.
#[cfg(unix)]
#[test]
fn links_in_a_run_are_not_written_through() {
    let place = tiny();
    let arguments = "--config tiny.toml --quiet --set train.steps=20";
    for name in [
        "metrics.jsonl",
        "timing.jsonl",
        "manifest.json",
        "summary.json",
        "checkpoints",
        "snapshots",
        ".lock",
        "config.toml",
    ] {
        for force in ["", "--force"] {
            let out = format!("{name}{force}");
            place.run(&format!("{arguments} --out {out}")).expect(0);
            let run = place.only_run(&out);
            fs::remove_file(run.summary_path()).unwrap();
            let (inside, theirs) = (run.path().join(name), place.path().join(format!("theirs-{out}")));
            // What stood there, now somebody else's.
            if name == "summary.json" {
                fs::write(&theirs, "theirs").unwrap();
            } else {
                fs::rename(&inside, &theirs).unwrap();
            }
            let before = content(&theirs);
            std::os::unix::fs::symlink(&theirs, &inside).unwrap();
            let ran = place.run(&format!("{arguments} --out {out} {force}")).expect(1);
            assert!(ran.stderr.contains(name), "{name}: {ran:?}");
            assert_eq!(content(&theirs), before, "{name}");
        }
    }
}

/// Every file in a folder, or the file.
fn content(path: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    if path.is_file() {
        return vec![(path.into(), fs::read(path).unwrap())];
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries.flat_map(|path| content(&path)).collect();
    all.sort();
    all
}

/// A checkpoint that is a link: what it leads to is neither overwritten nor removed.
#[cfg(unix)]
#[test]
fn a_linked_checkpoint_is_not_removed_elsewhere() {
    let place = tiny();
    place.run("--config tiny.toml --quiet --set train.steps=20 --out theirs").expect(0);
    let theirs = place.only_run("theirs").checkpoints().path(20);
    let before = content(&theirs);
    let config = runs::Config::parse_with(TINY, "tiny.toml", &["train.steps=40".into()]).unwrap();
    let (run, _) = train_until(&config, &place.path().join("mine"), 7);
    for name in ["step-10", ".step-15.new.tmp", ".step-10.old.tmp"] {
        std::os::unix::fs::symlink(&theirs, run.path().join("checkpoints").join(name)).unwrap();
    }
    train_here(&config, &place.path().join("mine"));
    assert_eq!(content(&theirs), before);
    assert!(!is_writing(&run.path().join("checkpoints")));
}

/// Pipes and devices never end: they are refused, not waited for.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_not_read() {
    let place = tiny();
    place.run("--config tiny.toml --quiet --set train.steps=20").expect(0);
    let run = place.only_run("runs");
    for name in ["metrics.jsonl", "summary.json", "manifest.json"] {
        let path = run.path().join(name);
        let kept = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let ran = place.run("--config tiny.toml --quiet --set train.steps=20").expect(1);
        assert!(ran.stderr.contains("not a regular file") && ran.stderr.contains(name), "{ran:?}");
        assert!(place.run("runs --verify").expect(3).stdout.contains(name));
        fs::remove_file(&path).unwrap();
        fs::write(&path, kept).unwrap();
    }
    // Nor where a run that was stopped goes on.
    let config = runs::Config::parse(TINY, "tiny.toml").unwrap();
    let (run, _) = train_until(&config, &place.path().join("stopped"), 7);
    trainer::training::manifest::manifest(&config, &burn::tensor::Device::flex(), 1)
        .unwrap()
        .write(&run.manifest_path())
        .unwrap();
    fs::remove_file(run.timing_path()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(run.timing_path()).status().unwrap().success());
    let ran = place.run("--config tiny.toml --quiet --out stopped").expect(1);
    assert!(ran.stderr.contains("not a regular file") && ran.stderr.contains("timing.jsonl"), "{ran:?}");
}

/// Whatever an experiment's author writes is text in its page.
#[test]
fn a_report_shows_hostile_text_as_text() {
    let place = tiny();
    let hostile = "</script><img src=x onerror=alert(1)><!--";
    let experiment = format!(
        "baseline = \"h1\"\nregime = \"split\"\nseeds = 2\nwhy_seeds = \"{hostile}\"\n[about]\nquestion = \"{hostile}\"\n\
         prediction = \"{hostile}\"\nexpected = \"{hostile}\"\nresult = \"{hostile}\"\n[metric]\nmargin = 0.02\n[base]\n\
         config = \"tiny.toml\"\ntrain.steps = 20\n[arms.h1]\nmodel.heads = 1\nlabel = \"{hostile}\"\n[arms.h2]\nlabel = \"{hostile}2\"\n"
    );
    place.file("test.toml", experiment);
    place.run("compare test.toml").expect(0);
    let folder = place.path().join("runs/test");
    // And what a run directory from somebody else may hold.
    for entry in fs::read_dir(&folder).unwrap() {
        let run = RunDirectory::at(entry.unwrap().path());
        if let Ok(mut manifest) = runs::Manifest::read(&run.manifest_path()) {
            manifest.device = hostile.into();
            manifest.write(&run.manifest_path()).unwrap();
        }
    }
    place.run("report runs/test").expect(0);
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("onerror=alert(1)"), "the text itself is there");
    assert!(!page.contains("<img src=x") && !page.contains("</script><img"));
    for entry in fs::read_dir(folder.join("figures")).unwrap() {
        let figure = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!figure.contains("<img") && !figure.contains("</script>"));
    }
}
