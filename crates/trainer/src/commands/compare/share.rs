//! What one of several processes does of an experiment's runs: all that nobody else does, or a share that was agreed on.

use std::str::FromStr;

use runs::{Experiment, PlannedRun};

use crate::machine::exit::Failure;

/// Which runs of a stage are this process's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Every run that no other process is doing.
    #[default]
    All,
    /// Every n-th, for schedulers that number their tasks.
    Shard(Shard),
    /// One run.
    Only(Only),
}

/// Such as 2/8: the second of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub index: usize,
    pub of: usize,
}

/// Such as h8:3: the run of arm h8 in pair 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only {
    pub arm: String,
    pub seed: u64,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) && of <= 100_000 => Ok(Self { index, of }),
            _ => Err("a shard is its number and how many there are, such as 2/8: 1/8 to 8/8".into()),
        }
    }
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once(':').and_then(|(arm, seed)| Some((arm.to_string(), seed.parse().ok()?)));
        parts.map(|(arm, seed)| Self { arm, seed }).ok_or_else(|| "a run is named by arm and seed, such as h8:3".into())
    }
}

impl Share {
    /// The runs of a stage that are this process's.
    pub fn of(&self, runs: &[PlannedRun]) -> Vec<PlannedRun> {
        let is_mine = |(place, run): &(usize, &PlannedRun)| match self {
            Self::All => true,
            Self::Shard(Shard { index, of }) => place % of == index - 1,
            Self::Only(Only { arm, seed }) => run.arm == *arm && run.pair == *seed,
        };
        runs.iter().enumerate().filter(is_mine).map(|(_, run)| run.clone()).collect()
    }

    /// Refuses a run that the experiment does not have.
    pub fn check(&self, experiment: &Experiment) -> Result<(), Failure> {
        let Self::Only(Only { arm, seed }) = self else { return Ok(()) };
        if experiment.arm(arm).is_none() {
            let arms: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "--only {arm}:{seed}: there is no such arm; they are {}",
                arms.join(", ")
            )));
        }
        let tuning = experiment.tuning.iter().flat_map(|tuning| &tuning.seeds);
        if !experiment.seeds.iter().chain(tuning).any(|other| other == seed) {
            return Err(Failure::usage(format!("--only {arm}:{seed}: the experiment has no such seed")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn shards_divide_the_runs_among_them() {
        let text = "baseline = \"h1\"\nseeds = 5\nwhy_seeds = \"test\"\n[metric]\nmargin = 0.02\n[base.task]\nkind = \"registers\"\n\
                    [grid]\n\"model.heads\" = [1, 2, 4]\n";
        let experiment = Experiment::parse(text, Path::new("test.toml")).unwrap();
        let runs = experiment.runs(Path::new("runs"));
        let mut shared: Vec<PlannedRun> =
            (1..=4).flat_map(|index| Share::Shard(Shard { index, of: 4 }).of(&runs)).collect();
        assert_eq!(shared.len(), runs.len());
        shared.sort_by_key(|run| runs.iter().position(|other| other == run));
        assert_eq!(shared, runs);
        assert_eq!(Share::All.of(&runs), runs);
        let only = Share::Only("h2:3".parse().unwrap());
        assert_eq!(only.of(&runs).iter().map(|run| (run.arm.as_str(), run.pair)).collect::<Vec<_>>(), [("h2", 3)]);
        assert!(only.check(&experiment).is_ok());
        for wrong in ["h3:3", "h2:5"] {
            assert!(Share::Only(wrong.parse().unwrap()).check(&experiment).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for text in ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        for text in ["", "h1", "h1:", "h1:x", "h1:-1"] {
            assert!(text.parse::<Only>().is_err(), "{text}");
        }
        assert_eq!("a:b:7".parse(), Ok(Only { arm: "a:b".into(), seed: 7 }));
    }
}
