use super::*;
use architecture::Architecture;
use data::{Mqar, Registers, Sort};
use proptest::prelude::*;

mod files;
mod malformed;
mod messages;

const MINIMAL: &str = "[task]\nkind = \"registers\"\n";

/// Every error names the file and, where there is one, the key, and is a few lines long.
fn assert_readable(error: &ConfigError, file: &str, key: Option<&str>) {
    let text = error.to_string();
    assert!(text.contains(file), "no file name: {text}");
    assert!(key.is_none_or(|key| text.contains(key)), "no key {key:?}: {text:.900}");
    assert!(text.len() < 3000 && text.lines().count() < 40, "too long: {text:.900}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.trim().is_empty());
}

#[test]
fn every_config_of_the_repository_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let config = Config::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(Some(config.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
            count += 1;
        }
    }
    assert!(count >= 4);
    let arm = |name: &str| Config::load(&folder.join(name), &[]).unwrap();
    let (mut h1, h8) = (arm("h1.toml"), arm("h8.toml"));
    (h1.name, h1.model.heads) = ("h8".into(), 8);
    assert_eq!(h1, h8, "the arms differ in heads and name alone");
    let zoology = arm("mqar_zoology_basic.toml");
    let passes = data::steps_per_pass(&zoology.task.sets, 32).unwrap();
    assert_eq!((passes, zoology.train.steps), (313, 100 * 313));
}

#[test]
fn a_task_is_enough_and_the_rest_has_defaults() {
    let config = Config::parse(MINIMAL, "configs/tiny arm.toml").unwrap();
    assert_eq!(config.name, "tiny-arm");
    assert_eq!((config.seed, config.backend), (0, Backend::Flex));
    assert_eq!(config.task, TaskSection::new(Task::new(Registers::default()), Sets::default()));
    assert_eq!((config.model.clone(), config.train.clone()), (ModelConfig::default(), TrainConfig::default()));
    for (origin, name) in [(".toml", "toml"), ("...", "run"), ("é.toml", "run"), ("a/b/h8.arm.toml", "h8.arm")] {
        assert_eq!(Config::parse(MINIMAL, origin).unwrap().name, name, "{origin}");
    }
}

#[test]
fn files_from_windows_are_read() {
    let text = format!("\u{feff}{}", MINIMAL.replace('\n', "\r\n"));
    assert_eq!(Config::parse(&text, "a.toml"), Config::parse(MINIMAL, "a.toml"));
    let error = Config::parse(&format!("{text}x = 1\r\n"), "a.toml").unwrap_err().to_string();
    assert!(error.contains("a.toml:3:1") && error.contains("3 | x = 1\n"), "{error}");
}

#[test]
fn the_resolved_config_is_complete_and_in_order() {
    let config = Config::parse(MINIMAL, "h8.toml").unwrap();
    insta::assert_snapshot!(config.to_toml(), @r#"
    name = "h8"
    seed = 0
    backend = "flex"

    [task]
    kind = "registers"
    registers = 4
    values = 4
    seq_len = 32
    outputs = 8
    table_seed = 0
    validation_examples = 1024
    test_examples = 2048

    [model]
    architecture = "decoder"
    d_model = 64
    layers = 1
    heads = 8
    mlp_ratio = 4
    positions = "learned"
    causal = true
    init = "torch"
    bias = true
    key_bias = false
    scale = "sqrt_d_head"
    merge = "concat"
    norm = "pre"
    residual = true
    mlp = true
    tied = false
    embedding_dropout = 0.0
    attention_dropout = 0.0
    residual_dropout = 0.0

    [train]
    steps = 800
    batch_size = 64
    lr = 0.003
    min_lr = 0.0
    warmup = 50
    schedule = "cosine"
    schedule_by = "step"
    weight_decay = 0.01
    beta1 = 0.9
    beta2 = 0.999
    eps = 0.00000001
    clip_norm = 1.0
    accumulate = 1
    eval_every = 50
    eval_batch = 256
    log_every = 1
    snapshots = 8
    "#);
    assert_eq!(config.hash().len(), 8);
    assert_ne!(config.hash(), Config { seed: 1, ..config.clone() }.hash());
}

#[test]
fn overrides_go_over_the_file_and_the_last_one_wins() {
    let set = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
        Config::parse_with("[task]\nkind = \"registers\"\nregisters = 3\n", "h8.toml", &overrides)
    };
    let config = set(&["model.heads=4", "name=h4", "backend = wgpu", "model.heads = 2", "train.lr=1"]).unwrap();
    assert_eq!((config.model.heads, config.name.as_str(), config.backend), (2, "h4", Backend::Wgpu));
    assert_eq!(config.train.lr, 1.0);
    // Changing the kind drops nothing silently.
    let error = set(&["task.kind=mqar"]).unwrap_err();
    assert_eq!(error.key(), Some("task.registers"));
    assert!(error.to_string().contains("--set task.kind=mqar"), "{error}");
    let config = Config::parse_with(MINIMAL, "h8.toml", &["task.kind=mqar".into()]).unwrap();
    assert_eq!(config.task.task, Task::new(Mqar::default()));
    for (text, key) in [
        ("model.hedas=4", Some("model.hedas")),
        ("model.heads=-4", Some("model.heads")),
        ("model.heads=four", Some("model.heads")),
        ("model.heads=", Some("model.heads")),
        ("model.heads=3", Some("model.heads")),
        ("modle.heads=4", Some("modle")),
        ("name.x=4", None),
        ("name=a/b", Some("name")),
        ("seed.x.y=4", Some("seed.x.y")),
        ("model=4", Some("model")),
        ("model={heads=4}", Some("model")),
        ("x={heads=4}", Some("x")),
        ("heads=4", Some("heads")),
        ("task.kind=mqra", Some("task.kind")),
        ("train.lr=nan", Some("train.lr")),
        ("train.lr", None),
        ("", None),
        ("=", None),
        (".=1", None),
        ("a.b.c.d.e.f.g.h.i.j=1", None),
        ("model.heads=4\nname = 3", Some("model.heads")),
        ("model.architecture=encoder_decoder", Some("model.architecture")),
        ("model.architecture=encoder", Some("model.architecture")),
    ] {
        let error = set(&[text]).unwrap_err();
        assert_readable(&error, "h8.toml", key);
        let shown = text.lines().next().unwrap_or_default();
        assert!(error.to_string().contains(&format!("--set {shown}")), "{error}");
    }
}

#[test]
fn a_pass_needs_a_fixed_set() {
    let error = Config::parse(&format!("{MINIMAL}[train]\nschedule_by = \"pass\"\n"), "a.toml").unwrap_err();
    assert_readable(&error, "a.toml:4:1", Some("train.schedule_by"));
    assert!(error.to_string().contains("task.train_examples"), "{error}");
    let text = format!("{MINIMAL}train_examples = 100\n[train]\nschedule_by = \"pass\"\n");
    assert_eq!(Config::parse(&text, "a.toml").unwrap().train.schedule_by, ScheduleBy::Pass);
}

fn any_config() -> impl Strategy<Value = Config> {
    let task = prop_oneof![
        (1usize..=4, 2usize..=5, 8usize..=64, 2usize..=16, 0..=i64::MAX as u64).prop_map(
            |(registers, values, seq_len, outputs, table_seed)| {
                Task::new(Registers { registers, values, seq_len, outputs, table_seed })
            }
        ),
        (1usize..=4, 8usize..=30, 1e-6f64..10.0).prop_map(|(pairs, half, power_a)| {
            Task::new(Mqar { vocab: 64, seq_len: 2 * half, pairs, power_a, ..Mqar::default() })
        }),
        (2usize..=20, 1usize..=9, 0usize..=9)
            .prop_map(|(vocab, min_len, more)| { Task::new(Sort::new(vocab, min_len, min_len + more)) }),
    ];
    let sets = (prop::option::of(1u64..=10_000_000), 1u64..=100_000, 1u64..=100_000).prop_map(
        |(train_examples, validation_examples, test_examples)| Sets {
            train_examples,
            validation_examples,
            test_examples,
        },
    );
    let model = (1usize..=4, 1usize..=16, 0.0f64..1.0, any::<[bool; 3]>(), prop::option::of(1usize..99)).prop_map(
        |(heads, width, dropout, [causal, bias, key_bias], d_ff)| ModelConfig {
            d_model: heads * width,
            heads,
            attention_dropout: dropout,
            causal,
            bias,
            key_bias,
            d_ff,
            kv_heads: causal.then_some(1),
            ..ModelConfig::default()
        },
    );
    let saves = (prop::option::of(1u64..=100_000_000), prop::option::of(1u64..=1000));
    let train = (0u64..=100_000_000, 1usize..=256, f64::MIN_POSITIVE..1e3, 0.0f64..=1.0, any::<bool>(), saves)
        .prop_map(|(steps, batch_size, lr, share, constant, (checkpoint_every, keep_checkpoints))| TrainConfig {
            steps,
            checkpoint_every,
            keep_checkpoints,
            batch_size,
            lr,
            min_lr: lr * share,
            beta1: share * 0.99,
            schedule: if constant { Schedule::Constant } else { Schedule::Cosine },
            ..TrainConfig::default()
        });
    ("[a-zA-Z0-9_-][a-zA-Z0-9_.-]{0,20}", 0..=i64::MAX as u64, 0usize..7, task, sets, model, train).prop_map(
        |(name, seed, backend, task, sets, mut model, train)| {
            if task.source().is_some() {
                (model.architecture, model.causal) = (Architecture::EncoderDecoder, true);
            }
            let task = TaskSection::new(task, sets);
            Config { name, seed, backend: Backend::ALL[backend], task, model, train }
        },
    )
}

/// TOML of valid and invalid names with any values.
fn any_toml() -> impl Strategy<Value = toml::Table> {
    const NAMES: &[&str] =
        &["name", "seed", "task", "model", "train", "heads", "kind", "steps", "lr", "registers", "fill", "x"];
    let name = || prop_oneof![4 => prop::sample::select(NAMES).prop_map(String::from), 1 => any::<String>()];
    let leaf = prop_oneof![
        any::<i64>().prop_map(toml::Value::Integer),
        any::<f64>().prop_map(toml::Value::Float),
        any::<bool>().prop_map(toml::Value::Boolean),
        prop::sample::select(&["registers", "mqar", "torch", ""][..]).prop_map(|text| toml::Value::String(text.into())),
        any::<String>().prop_map(toml::Value::String),
    ];
    let value = leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(toml::Value::Array),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|entries| toml::Value::Table(entries.into_iter().collect())),
        ]
    });
    let root = prop::sample::select(NAMES).prop_map(String::from);
    prop::collection::btree_map(root, value, 0..6).prop_map(|entries| entries.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_resolved_config_reads_back_equal(config in any_config()) {
        let text = config.to_toml();
        let read = Config::parse(&text, "resolved.toml");
        prop_assert!(read.is_ok(), "{}\n{}", read.unwrap_err(), text);
        let read = read.unwrap();
        prop_assert_eq!(&read, &config);
        prop_assert_eq!(read.hash(), config.hash());
    }
}

proptest! {
    #[test]
    fn any_bytes_give_one_readable_error(bytes: Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("junk.toml");
        std::fs::write(&path, bytes).unwrap();
        assert_readable(&Config::load(&path, &[]).unwrap_err(), "junk.toml", None);
    }

    #[test]
    fn any_text_gives_one_readable_error(text: String) {
        if let Err(error) = Config::parse(&text, "junk.toml") {
            assert_readable(&error, "junk.toml", None);
        }
    }

    #[test]
    fn any_toml_is_read_or_refused(table in any_toml(), with_task: bool, set: String, key in "(task|model|[a-z]{1,3})\\.[a-z]{1,6}") {
        let mut table = table;
        if with_task {
            let task = toml::Table::from_iter([("kind".to_string(), toml::Value::String("mqar".into()))]);
            table.insert("task".into(), toml::Value::Table(task));
        }
        let text = toml::to_string(&table).unwrap();
        for overrides in [vec![], vec![format!("{key}={set}")], vec![set.clone()]] {
            match Config::parse_with(&text, "any.toml", &overrides) {
                Ok(config) => prop_assert_eq!(Config::parse(&config.to_toml(), "any.toml"), Ok(config)),
                Err(error) => assert_readable(&error, "any.toml", error.key().filter(|key| key.len() < 100)),
            }
        }
    }
}
