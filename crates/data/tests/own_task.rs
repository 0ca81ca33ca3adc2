//! A task that another crate defines, registers and reads: that of `examples/define_task.rs`.

#[path = "../examples/define_task.rs"]
mod own_task;

use headcount_data::{
    Definition, Draw, Parameter, RegisterError, Registers, Sample, Sets, Split, Task, TaskError, fingerprint, register,
};
use own_task::Parity;
use serde::Deserialize;

fn read(text: &str) -> Result<Task, String> {
    register::<Parity>().map_err(|error| error.to_string())?;
    let deserializer = toml::de::Deserializer::parse(text).map_err(|error| error.to_string())?;
    Task::from_kind("parity", deserializer).ok_or("no such kind")?.map_err(|error| error.to_string())
}

#[test]
fn the_example_runs() {
    own_task::main().unwrap();
}

#[test]
fn a_registered_task_is_one_like_any_other() {
    let task = read("bits = 6").unwrap();
    assert_eq!(task, Task::new(Parity { bits: 6 }));
    assert_ne!(task, Task::new(Parity { bits: 8 }));
    assert_eq!(toml::to_string(&task).unwrap(), "kind = \"parity\"\nbits = 6\n");
    assert_eq!((Task::keys("parity"), Task::default_of("parity")), (Some(vec!["bits"]), Some(read("").unwrap())));
    assert!(Task::kinds().contains(&"parity") && task.downcast::<Registers>().is_none());
    assert_eq!(task.downcast::<Parity>().map(|parity| parity.bits), Some(6));

    let sample = task.sample(Split::Train, 0, 3);
    let ones = |t: usize| sample.tokens[..=t].iter().sum::<u32>() as i32;
    assert!((0..6).all(|t| sample.targets[t] == ones(t) % 2));
    assert_ne!(fingerprint(&task, &Sets::default(), 0), fingerprint(&read("bits = 8").unwrap(), &Sets::default(), 0));
}

#[test]
fn its_errors_have_places_and_rules() {
    for (text, line, part) in
        [("bits = 'six'", 1, "six"), ("\nbits = -6", 2, "-6"), ("\n\nbit = 6", 3, "unknown field `bit`")]
    {
        let error = read(text).unwrap_err();
        assert!(error.contains(&format!("line {line}")) && error.contains(part), "{error}");
    }
    let error = read("bits = 7").unwrap().check().unwrap_err();
    assert_eq!((error.key(), error.to_string().as_str()), ("bits", "bits = 7 is odd"));
    assert!(matches!(read("bits = 1").unwrap().check(), Err(TaskError::OutOfRange { key: "bits", .. })));
}

/// A task with the kind and the keys of `NAMES[NAME]`.
#[derive(Debug, Default, Deserialize)]
struct Named<const NAME: usize> {}

const NAMES: [(&str, &[&str]); 7] = [
    ("registers", &["a"]),
    ("parity", &[]),
    ("Capital", &[]),
    ("", &[]),
    ("fine", &["train_examples"]),
    ("fine", &["a", "b", "a"]),
    ("fine", &["two words"]),
];

impl<const NAME: usize> Definition for Named<NAME> {
    fn kind(&self) -> &'static str {
        NAMES[NAME].0
    }
    fn about(&self) -> &'static str {
        "nothing"
    }
    fn prediction(&self) -> &'static str {
        "none"
    }
    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        NAMES[NAME].1.iter().map(|&key| (key, true.into())).collect()
    }
    fn check(&self) -> Result<(), TaskError> {
        Ok(())
    }
    fn vocab(&self) -> usize {
        1
    }
    fn outputs(&self) -> usize {
        1
    }
    fn seq_len(&self) -> usize {
        1
    }
    fn prepare(&self) -> Draw {
        std::sync::Arc::new(|_| Sample::new(vec![0], vec![0]))
    }
    fn explain(&self, _: &Sample) -> String {
        String::new()
    }
}

#[test]
fn names_that_a_config_could_not_tell_are_refused() {
    register::<Parity>().unwrap();
    let before = Task::default_of("registers");
    assert_eq!(register::<Named<0>>(), Err(RegisterError::KindTaken { kind: "registers" }));
    assert_eq!(register::<Named<1>>(), Err(RegisterError::KindTaken { kind: "parity" }));
    assert_eq!(Task::default_of("registers"), before);
    assert_eq!(register::<Named<2>>(), Err(RegisterError::NotAName { kind: "Capital", word: "Capital" }));
    assert_eq!(register::<Named<3>>(), Err(RegisterError::NotAName { kind: "", word: "" }));
    assert_eq!(register::<Named<4>>(), Err(RegisterError::KeyTaken { kind: "fine", key: "train_examples" }));
    assert_eq!(register::<Named<5>>(), Err(RegisterError::KeyTaken { kind: "fine", key: "a" }));
    assert_eq!(register::<Named<6>>(), Err(RegisterError::NotAName { kind: "fine", word: "two words" }));
    assert!(!Task::kinds().contains(&"fine"));
}

#[test]
fn many_threads_may_register_the_same_task() {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| (0..50).all(|_| register::<Parity>().is_ok()))).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
    register::<Registers>().unwrap();
    let count = |kind| Task::kinds().iter().filter(|&&known| known == kind).count();
    assert_eq!((count("parity"), count("registers")), (1, 1));
}
