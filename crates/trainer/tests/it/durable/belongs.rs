//! MarinFold#184: files that don't belong together are refused by every command that reads a run.

use super::*;

const TRAIN: &str = "--config tiny.toml --quiet --set train.steps=20";

/// Every command that reads the run in `folder`, and its exit code where a file is of another run.
fn commands(folder: &str) -> Vec<(String, i32)> {
    vec![
        (format!("heads {folder}"), 1),
        (format!("report {folder}"), 1),
        (format!("generate {folder} --sample 0"), 1),
        (format!("export {folder} --output out.safetensors"), 1),
        (format!("doctor {folder}"), 1),
        (format!("runs --verify {folder}"), 3),
        (TRAIN.into(), 1),
    ]
}

#[track_caller]
fn assert_refused(place: &Workplace, folder: &str, what: &str) {
    for (command, code) in commands(folder) {
        let ran = place.run(&command);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains(what), "{command}: {what} is not told\n{told}");
        ran.expect(code);
    }
    assert!(!place.path().join("out.safetensors").exists());
}

/// `sed -i 's/^heads = 2/heads = 4/' RUN/config.toml`, and other keys alike.
#[test]
fn marinfold_184_an_edited_config_is_refused_by_every_command() {
    let place = tiny();
    place.run(TRAIN).expect(0);
    let run = place.only_run("runs");
    let folder = run.path().display().to_string();
    let text = fs::read_to_string(run.config_path()).unwrap();
    for (from, to, key, there, here) in [
        ("heads = 2", "heads = 4", "model.heads", "4", "2"),
        ("causal = true", "causal = false", "model.causal", "false", "true"),
        ("\nsteps = 20", "\nsteps = 30", "train.steps", "30", "20"),
    ] {
        assert!(text.contains(from), "{from}\n{text}");
        fs::write(run.config_path(), text.replacen(from, to, 1)).unwrap();
        assert_refused(&place, &folder, &format!("{key}: {there} there, {here} "));
    }
    // Renamed, an intact run is read like any other.
    fs::write(run.config_path(), text).unwrap();
    fs::rename(run.path(), place.path().join("renamed")).unwrap();
    for (command, _) in commands("renamed").into_iter().take(6).filter(|(command, _)| !command.starts_with("doctor")) {
        place.run(&command).expect(0);
    }
    // What the doctor thinks of a run this short is another matter.
    assert!(place.run("doctor renamed").stdout.contains("finite weights"));
}

/// A checkpoint, a summary and a manifest of another run, intact.
#[test]
fn marinfold_184_files_of_another_run_are_refused_by_every_command() {
    let place = tiny();
    place.run(TRAIN).expect(0);
    place.run(&format!("{TRAIN} --seed 1 --out others")).expect(0);
    let (run, other) = (place.only_run("runs"), place.only_run("others"));
    let folder = run.path().display().to_string();
    for name in ["manifest.json", "summary.json"] {
        let before = fs::read(run.path().join(name)).unwrap();
        fs::copy(other.path().join(name), run.path().join(name)).unwrap();
        assert_refused(&place, &folder, "seed: ");
        fs::write(run.path().join(name), before).unwrap();
    }
    let checkpoint = run.checkpoints().path(20);
    fs::remove_dir_all(&checkpoint).unwrap();
    fs::rename(other.checkpoints().path(20), &checkpoint).unwrap();
    for command in ["generate {} --sample 0", "export {} --output out.safetensors", "doctor {}"] {
        let ran = place.run(&command.replace("{}", &folder)).expect(1);
        assert!(ran.stderr.contains("seed: 1 there, 0 in manifest.json"), "{command}: {ran:?}");
    }
    assert!(place.run("runs --verify").expect(3).stdout.contains("seed: 1 there, 0 in manifest.json"));
}
