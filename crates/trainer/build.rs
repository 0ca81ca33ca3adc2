//! Tells the program which commit it is built from, where git knows, and what else makes two builds differ.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    embed();
    for path in ["..", "../../configs", "../../experiments", "../../Cargo.lock", "../../.git/logs/HEAD"] {
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
    println!("cargo::rustc-env=HEADCOUNT_BUILD={:016x}", build());
}

/// Writes the list of the repository's configs and experiments with their texts, for whoever has the program alone.
#[expect(clippy::disallowed_methods, reason = "a file of cargo's, which the compiler reads")]
fn embed() {
    let root = Path::new("../..").canonicalize().unwrap_or_else(|_| "../..".into());
    let mut files = vec![];
    for folder in ["configs", "experiments"] {
        below(&root.join(folder), &mut files);
    }
    let mut list = String::from("/// Path in the repository, and text.\npub const FILES: &[(&str, &str)] = &[\n");
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string().replace('\\', "/");
        list += &format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string());
    }
    list += "];\n";
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default().join("embedded.rs");
    if let Err(error) = fs::write(&out, list) {
        println!("cargo::error={}: {error}", out.display());
    }
}

/// A hash of the workspace's sources, the locked dependencies, the compiler and how it is called.
fn build() -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut sources = vec![PathBuf::from("../../Cargo.lock"), PathBuf::from("../../Cargo.toml")];
    for folder in entries(Path::new("..")) {
        sources.push(folder.join("Cargo.toml"));
        below(&folder.join("src"), &mut sources);
    }
    for path in sources {
        path.hash(&mut hasher);
        fs::read(&path).ok().hash(&mut hasher);
    }
    let mut features: Vec<String> =
        env::vars().map(|(name, _)| name).filter(|name| name.starts_with("CARGO_FEATURE_")).collect();
    features.sort();
    features.hash(&mut hasher);
    for name in ["TARGET", "PROFILE", "OPT_LEVEL", "DEBUG", "CARGO_ENCODED_RUSTFLAGS", "CARGO_CFG_TARGET_FEATURE"] {
        env::var(name).ok().hash(&mut hasher);
    }
    let compiler = env::var_os("RUSTC").and_then(|rustc| Command::new(rustc).arg("-vV").output().ok());
    compiler.map(|output| output.stdout).hash(&mut hasher);
    hasher.finish()
}

/// What is in a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// Every file below a folder.
fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() { below(&path, files) } else { files.push(path) }
    }
}
