use super::*;
use proptest::prelude::*;

mod messages;
mod plans;

/// Two arms on a task, without any file beside it.
const SMALL: &str = "baseline = \"h1\"\n[metric]\nmargin = 0.02\n[base.task]\nkind = \"registers\"\n\
                     [arms.h1]\nmodel.heads = 1\n[arms.h8]\n";

fn parse(text: &str) -> Result<Experiment, ConfigError> {
    Experiment::parse(text, Path::new("experiments/small.toml"))
}

fn heads(experiment: &Experiment) -> Vec<(&str, &str, usize)> {
    experiment.arms.iter().map(|arm| (arm.name.as_str(), arm.label.as_str(), arm.config.model.heads)).collect()
}

/// The experiments of the repository.
fn experiment_files(folder: &Path) -> Vec<PathBuf> {
    let folders = [folder.into(), folder.join("claims")].map(|folder| fs::read_dir(folder).unwrap());
    let paths = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

#[test]
fn every_experiment_of_the_repository_is_valid_and_says_what_it_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut names = vec![];
    for path in experiment_files(&folder) {
        let experiment = Experiment::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let about = &experiment.about;
        assert!(about.question.is_some() && about.prediction.is_some() && about.expected.is_some(), "{path:?}");
        assert!(about.minutes.is_some_and(|minutes| minutes <= 60.0), "{path:?}");
        assert_eq!(Experiment::parse(&experiment.to_toml(), Path::new("alone.toml")).unwrap(), experiment);
        names.push(experiment.name);
    }
    // All of them can lie in one folder.
    names.sort();
    assert!(names.len() >= 15 && names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
    let load = |name: &str| Experiment::load(&folder.join(name)).unwrap();
    let flagship = load("h1-vs-h8.toml");
    assert_eq!(heads(&flagship), [("h1", "1 head", 1), ("h8", "8 heads", 8)]);
    assert_eq!(flagship.seeds, (0..10).collect::<Vec<u64>>());
    assert_eq!(load("a-a.toml").repetition_seeds().count(), 200);
}

/// d_ff pays for heads of one width: 256 with eight, as in configs/h8.toml, and equal parameters.
#[test]
fn widths_of_the_mlp_are_matched() {
    let text = "baseline = \"h1\"\nregime = \"params\"\nmatch_d_ff = true\n[metric]\nmargin = 0.02\n\
                [base.task]\nkind = \"registers\"\n[base.model]\nd_head = 8\nd_ff = 368\n[grid]\n\"model.heads\" = [1, 2, 4, 8, 16]\n";
    let fixed = parse(text).unwrap();
    let d_ff: Vec<_> = fixed.arms.iter().map(|arm| arm.config.model.d_ff()).collect();
    assert_eq!(d_ff, [368, 352, 320, 256, 128]);
    let parameters = |arm: &Arm| crate::sizes::parameters(&arm.config);
    assert!(fixed.arms.iter().all(|arm| parameters(arm) == parameters(&fixed.arms[0])));
}

#[test]
fn arms_are_differences_from_the_base() {
    let experiment = parse(SMALL).unwrap();
    assert_eq!(experiment.name, "small");
    assert_eq!(heads(&experiment), [("h1", "1 head", 1), ("h8", "8 heads", 8)]);
    assert_eq!((experiment.regime, experiment.seeds.len()), (Regime::Split, 10));
    assert_eq!(experiment.metric.threshold, Some(0.95));
    let config = experiment.config(&experiment.arms[0], 7);
    assert_eq!((config.name.as_str(), config.seed), ("h1", 7));
}

#[test]
fn runs_come_pair_by_pair_and_tuning_runs_beside_them() {
    let text = SMALL.replace("[metric]", "[tuning]\nlr = [1e-2, 1e-3]\nseeds = [1000]\n[metric]");
    let experiment = parse(&text).unwrap();
    let runs = experiment.runs(Path::new("runs"));
    let names: Vec<_> = runs.iter().take(3).map(|run| (run.arm.as_str(), run.pair)).collect();
    assert_eq!((names, runs.len()), (vec![("h1", 0), ("h8", 0), ("h1", 1)], 20));
    assert!(runs[0].directory.path().starts_with("runs/small"));

    let tuning = experiment.tuning_runs(Path::new("runs"));
    let names: Vec<_> = tuning.iter().map(|run| run.config.name.as_str()).collect();
    assert_eq!(names, ["h1-lr0.001", "h8-lr0.001", "h1-lr0.01", "h8-lr0.01"]);
    let path = tuning[0].directory.path().display().to_string();
    assert!(path.starts_with("runs/small/tuning/h1-lr0.001-seed1000-"), "{path}");
    let tuned = experiment.tuned(&[("h8".to_string(), 0.01)].into());
    assert_eq!((tuned.arms[0].config.train.lr, tuned.arms[1].config.train.lr), (3e-3, 1e-2));
}

#[test]
fn a_grid_makes_the_product_and_names_it() {
    let grid = "[grid]\n\"model.heads\" = [1, 2]\n\"model.positions\" = [\"rope\", \"learned\"]\n";
    let text = SMALL.split("[arms.h1]").next().unwrap().replace("\"h1\"", "\"h1-positions-rope\"") + grid;
    let experiment = parse(&text).unwrap();
    let names: Vec<_> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["h1-positions-rope", "h1-positions-learned", "h2-positions-rope", "h2-positions-learned"]);
    assert_eq!(experiment.sweep.as_deref(), Some("model.heads"));
    assert_eq!(number_at(&experiment.arms[3].config, "model.heads"), Some(2.0));
    assert_eq!(number_at(&experiment.arms[3].config, "model.d_head"), Some(32.0));
    assert_eq!(number_at(&experiment.arms[3].config, "model.positions"), None);
}

#[test]
fn the_file_that_stands_alone_gives_the_same_experiment() {
    let text = SMALL
        .replace("[arms.h8]\n", "[arms.h8]\nlabel = \"eight \\\"heads\\\"\"\ntask.kind = \"mqar\"\ntask.pairs = 2\n")
        .replace(
            "[base.task]\nkind = \"registers\"\n",
            "[base.train]\nlr = 0.1\n[arms.h1.task]\nkind = \"registers\"\n",
        );
    let experiment = parse(&text.replace("baseline", "regime = \"free\"\nbaseline")).unwrap();
    let alone = experiment.to_toml();
    let base = alone.split("[base]").nth(1).unwrap().split("[arms").next().unwrap();
    assert!(base.contains("train.lr = 0.1") && !base.contains("kind"), "{alone}");
    assert_eq!(Experiment::parse(&alone, Path::new("elsewhere/small.toml")).unwrap(), experiment, "{alone}");
}

#[test]
fn repetitions_cut_the_seeds() {
    let text = format!("seeds = 30\nrepetitions = 3\n{SMALL}");
    let experiment = parse(&text).unwrap();
    let first: Vec<u64> = experiment.repetition_seeds().map(|seeds| seeds[0]).collect();
    assert_eq!(first, [0, 10, 20]);
}

/// Beside the numbers of others: each with its source, and in what ours differ.
#[test]
fn published_results_have_their_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/published");
    for (name, values) in [("d-retrieval", 5), ("farthest", 5), ("zoology-figure2", 1)] {
        let experiment = Experiment::load(&folder.join(name).with_extension("toml")).unwrap_or_else(|e| panic!("{e}"));
        let published = experiment.published.clone().unwrap();
        assert_eq!(published.values.len(), values, "{name}");
        assert!(published.source.len() > 20, "{name}: {}", published.source);
        assert!(published.differs.is_some() && experiment.about.prediction.is_some(), "{name}");
        assert_eq!(Experiment::parse(&experiment.to_toml(), Path::new("alone.toml")).unwrap(), experiment);
        // They are shown, and decide nothing: a registration knows nothing of them.
        let without = Experiment { published: None, ..experiment.clone() };
        let content = |experiment: &Experiment| crate::Registration::of(experiment, 0, 10).content;
        assert_eq!(content(&experiment), content(&without));
    }
    // Of the text, which is got by a script, the file is all that is missing.
    let text = Experiment::load(&folder.join("text.toml"));
    let error = text.err().map(|error| error.to_string());
    assert!(error.as_ref().is_none_or(|error| error.contains("kjv.txt: can't be read")), "{error:?}");
}

fn mangled() -> impl Strategy<Value = String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files = experiment_files(&folder);
    files.sort();
    let texts: Vec<String> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let junk = prop_oneof!["[0-9\\[\\]\"={}.,a-z\n-]{0,6}", any::<String>()];
    (prop::sample::select(texts), any::<prop::sample::Index>(), 0usize..12, junk).prop_map(|(text, at, cut, junk)| {
        let characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len());
        let rest = characters.iter().skip(at + cut);
        characters[..at].iter().copied().chain(junk.chars()).chain(rest.copied()).collect()
    })
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = parse(&text);
    }

    /// Files with a few characters replaced: read, or refused with one readable error.
    #[test]
    fn a_damaged_file_is_read_or_refused(text in mangled()) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/damaged.toml");
        match Experiment::parse(&text, &path) {
            Ok(experiment) => {
                let again = Experiment::parse(&experiment.to_toml(), &path);
                prop_assert_eq!(again.map_err(|error| error.to_string()), Ok(experiment));
            }
            Err(error) => {
                let error = error.to_string();
                prop_assert!(error.contains(".toml") && error.len() < 3000 && error.lines().count() < 40, "{}", error);
            }
        }
    }

    #[test]
    fn any_bytes_give_one_readable_error(bytes: Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("junk.toml");
        fs::write(&path, bytes).unwrap();
        prop_assert!(Experiment::load(&path).unwrap_err().to_string().contains("junk.toml"));
    }
}
