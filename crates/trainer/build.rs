//! Tells the program which commit it is built from, where git knows.

use std::process::Command;

fn main() {
    for path in ["..", "../../Cargo.lock", "../../.git/logs/HEAD"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo::rustc-env=HEADCOUNT_COMMIT={commit}");
        let dirty = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
        println!("cargo::rustc-env=HEADCOUNT_DIRTY={dirty}");
    }
}
