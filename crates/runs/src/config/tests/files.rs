//! Configs whose samples lie in files.

use std::fs;

use super::*;
use crate::{RunDirectory, RunError, manifest::DataFile};

/// A folder with `data.txt`, of which a config stands beside it.
struct Folder(tempfile::TempDir);

const TEXT: &str = "name = \"t\"\n[task]\nkind = \"text\"\nfiles = \"data.txt\"\nseq_len = 8\ntest_examples = 5\n";

impl Folder {
    fn new(file: &str, content: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write(file, content);
        folder
    }

    fn write(&self, file: &str, content: &str) {
        fs::write(self.0.path().join(file), content).unwrap();
    }

    fn config(&self, text: &str) -> Result<Config, String> {
        self.write("c.toml", text);
        Config::load(&self.0.path().join("c.toml"), &[]).map_err(|error| error.to_string())
    }
}

#[test]
fn paths_are_those_of_the_config_and_the_file_sets_sizes() {
    let folder = Folder::new("data.txt", &"a text of a few letters\n".repeat(40));
    let config = folder.config(TEXT).unwrap();
    assert_eq!((config.dims().vocab, config.dims().outputs, config.dims().length), (256, 256, 8));
    // 96 bytes of each small part, of which 95 follow another.
    assert_eq!((config.task.sets.validation_examples, config.task.sets.test_examples), (12, 5));
    let files = DataFile::of(&config.task.task);
    assert_eq!((files.len(), files[0].name.as_str(), files[0].bytes), (1, "data.txt", 960));
    // The resolved config says what was asked for and where the file is, so that it reads the same from anywhere.
    let text = config.to_toml();
    assert!(
        text.contains("validation_examples = 1024") && text.contains(&*folder.0.path().to_string_lossy()),
        "{text}"
    );
    assert_eq!(Config::parse(&text, "elsewhere/again.toml").unwrap(), config);
    // What is moved keeps its name, and is equal.
    let moved = Folder::new("data.txt", &"a text of a few letters\n".repeat(40)).config(TEXT).unwrap();
    assert_eq!((moved.hash(), &moved), (config.hash(), &config));
    assert_ne!(moved.to_toml(), config.to_toml());
    let other = folder.config(&TEXT.replace("seq_len = 8", "seq_len = 9")).unwrap();
    assert_ne!(other.hash(), config.hash());
}

#[test]
fn what_is_wrong_with_a_file_is_said_at_its_key() {
    let folder = Folder::new("data.jsonl", "{\"tokens\": [1, 2], \"label\": 0}\n{\"tokens\": [1, -2], \"label\": 1}\n");
    let records = "[task]\nkind = \"records\"\nfiles = \"data.jsonl\"\n";
    let error = folder.config(records).unwrap_err();
    for part in ["`task.files`", "c.toml:3:1", "data.jsonl:2: `tokens[1]` is -2"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = folder.config(&records.replace("data.jsonl", "absent.jsonl")).unwrap_err();
    assert!(error.contains("absent.jsonl: can't be read"), "{error}");
    folder.write("data.jsonl", "");
    assert!(folder.config(records).unwrap_err().contains("data.jsonl: is empty"));
    folder.write("data.csv", "time,load\n0,1.5\n1,nan\n");
    let error = folder.config("[task]\nkind = \"series\"\nfiles = \"data.csv\"\nwindow = 4\n").unwrap_err();
    assert!(error.contains("data.csv:3: `load` is `nan`, and must be a finite number"), "{error}");
    let error = folder.config("[task]\nkind = \"text\"\n").unwrap_err();
    assert!(error.contains("`task.files`") && error.contains("names no file"), "{error}");
    let error = folder.config("[task]\nkind = \"texts\"\nfiles = \"data.txt\"\n").unwrap_err();
    assert!(error.contains("did you mean `text`?"), "{error}");
}

#[test]
fn a_run_whose_file_changed_is_refused_with_both_values() {
    let content = "a text of a few letters\n".repeat(40);
    let folder = Folder::new("data.txt", &content);
    let config = folder.config(TEXT).unwrap();
    let directory = RunDirectory::of(&folder.0.path().join("runs"), &config);
    drop(directory.create(&config).unwrap());
    let manifest = crate::open::tests::manifest(&config);
    manifest.write(&directory.manifest_path()).unwrap();
    directory.open_as(&config).unwrap();

    folder.write("data.txt", &content.replace("few", "lot"));
    let changed = folder.config(TEXT).unwrap();
    assert_eq!(changed.hash(), config.hash(), "it is looked for in the same place");
    let error = directory.open_as(&changed).unwrap_err();
    assert!(matches!(error, RunError::FileChanged { .. }), "{error}");
    let hash = |config: &Config| DataFile::of(&config.task.task)[0].blake3.chars().take(16).collect::<String>();
    let (text, then, now) = (error.to_string(), hash(&config), hash(&changed));
    assert!(then != now && text.contains(&then) && text.contains(&now) && text.contains("data.txt"), "{text}");
    folder.write("data.txt", &content);
    directory.open_as(&folder.config(TEXT).unwrap()).unwrap();
}

#[test]
fn a_read_out_belongs_to_tasks_with_one_answer() {
    let text = "[task]\nkind = \"d_retrieval\"\nseq_len = 6\n[model]\ncausal = false\nreadout = true\nheads = 4\n";
    let config = Config::parse(text, "d.toml").unwrap();
    let dims = config.dims();
    assert_eq!((dims.vocab, dims.inputs, dims.outputs, dims.length, dims.readout), (0, 4, 1, 7, true));
    assert_eq!(Config::parse(&config.to_toml(), "d.toml").unwrap(), config);
    let refused = |from: &str, to: &str| Config::parse(&text.replace(from, to), "d.toml").unwrap_err().to_string();
    assert!(refused("causal = false\n", "").contains("`model.readout`: readout = true needs causal = false"));
    let error = refused("kind = \"d_retrieval\"", "kind = \"registers\"");
    assert!(error.contains("one answer a sample"), "{error}");
}
