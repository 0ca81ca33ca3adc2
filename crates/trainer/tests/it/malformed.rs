//! Configs that no run can be made from, through the program: one readable error, exit code 2. (The full list of such
//! configs is tested where they are read.)

use crate::support::*;

#[test]
fn malformed_configs_give_one_readable_error() {
    let task = "[task]\nkind = \"registers\"\n";
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"".into(), "empty"),
        (b"name = \"h8\"\n".into(), "[task]"),
        (b"\x7fELF\x02\x01\x01\x00\x00".into(), "arm.toml"),
        (b"[task]\nkind = \"registers\" # caf\xe9\n".into(), "UTF-8"),
        (b"[task\n".into(), "arm.toml:1"),
        (b"[task]\nkind = \"register\"\n".into(), "registers"),
        (format!("{task}[modle]\nheads = 4\n").into(), "model"),
        (format!("{task}[model]\nhaeds = 4\n").into(), "heads"),
        (format!("{task}[model]\nheads = \"four\"\n").into(), "model.heads"),
        (format!("{task}[model]\nheads = -1\n").into(), "model.heads"),
        (format!("{task}[model]\nd_model = 99999999999999999999\n").into(), "d_model"),
        (format!("{task}[model]\nd_model = 65536\nlayers = 1024\nheads = 1\n").into(), "d_model"),
        (format!("{task}[train]\nbatch_size = 65536\n").into(), "batch_size"),
        (format!("{task}[train]\nlr = nan\n").into(), "train.lr"),
        (format!("{task}[train]\nsteps = 1e9\n").into(), "train.steps"),
        (format!("{task}validation_examples = 0\n").into(), "validation_examples"),
    ];
    let place = Workplace::new();
    for (content, expected) in cases {
        place.file("arm.toml", &content);
        let ran = place.run("--config arm.toml").expect(2);
        let shown = String::from_utf8_lossy(&content);
        assert!(ran.stderr.contains(expected), "{shown}\n{}", ran.stderr);
        assert_eq!(ran.stderr.matches("error: ").count(), 1, "{shown}\n{}", ran.stderr);
        assert!(ran.stderr.lines().count() <= 12, "{shown}\n{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    for arguments in ["--config .", "--config arm.toml --set model.heads", "--config arm.toml --set =3"] {
        place.file("arm.toml", task);
        let ran = place.run(arguments).expect(2);
        assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    }
    assert!(!place.path().join("runs").exists());
}
