use proptest::prelude::*;

use super::*;
use crate::config::Config;

const SOON: Duration = Duration::from_millis(60);

fn config() -> Config {
    Config::parse("name = \"h1\"\n[task]\nkind = \"registers\"\n", "test.toml").unwrap()
}

fn run_in(folder: &Path) -> RunDirectory {
    RunDirectory::of(folder, &config())
}

#[track_caller]
fn mine(asked: Asked) -> Claim {
    match asked {
        Asked::Mine(claim) => claim,
        other => panic!("{other:?}"),
    }
}

fn is_elsewhere(asked: &Asked) -> bool {
    matches!(asked, Asked::Elsewhere { .. })
}

/// A claim whose holder can't be asked whether it lives: from another machine.
fn from_elsewhere(claim: &Claim) {
    let text = fs::read_to_string(claim.token.path()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let other = format!("process 1 on elsewhere\nanother boot\n{}\n{}\n", lines[2], lines[3]);
    fs::write(claim.token.path(), other).unwrap();
}

/// What a worker would have written.
fn work(attempt: &RunDirectory, name: &str, content: &str) {
    drop(attempt.create(&config()).unwrap());
    fs::write(attempt.path().join(name), content).unwrap();
}

#[test]
fn one_holds_a_run_and_what_it_did_comes_to_rest() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let mut one = Claims::default();
    let mut other = Claims::default();
    let claim = mine(one.ask(&run).unwrap());
    assert!(is_elsewhere(&other.ask(&run).unwrap()) && is_elsewhere(&one.ask(&run).unwrap()));
    work(claim.attempt(), "notes", "half");
    assert_eq!(latest(&run), *claim.attempt());
    assert!(claim.rest().unwrap());
    assert_eq!(fs::read_to_string(run.path().join("notes")).unwrap(), "half");
    assert!(!folder.path().join(WORKING).exists());
    // Gone on with from there.
    let claim = mine(other.ask(&run).unwrap());
    assert_eq!(fs::read_to_string(claim.attempt().path().join("notes")).unwrap(), "half");
    assert!(!run.path().exists());
}

/// A process that is gone on this machine is known at once, where there are locks.
#[cfg(target_os = "linux")]
#[test]
fn a_holder_that_is_gone_is_known_by_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let claim = mine(Claims::default().ask(&run).unwrap());
    work(claim.attempt(), "notes", "half");
    drop(claim); // as a kill would
    let claim = mine(Claims::default().ask(&run).unwrap());
    assert!(claim.token.attempt().starts_with("2-"));
    assert_eq!(fs::read_to_string(claim.attempt().path().join("notes")).unwrap(), "half");
    assert!(claim.rest().unwrap());
    assert!(run.path().is_dir() && !folder.path().join(WORKING).exists());
}

/// One that was stopped for longer than its claim and continued: what it writes then reaches nobody.
#[test]
fn a_holder_that_wakes_up_too_late_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let mut late = mine(Claims::new(SOON).ask(&run).unwrap());
    work(late.attempt(), "notes", "late");
    from_elsewhere(&late);
    let mut claims = Claims::new(SOON);
    assert!(is_elsewhere(&claims.ask(&run).unwrap()), "not judged by what was before it was looked at");
    std::thread::sleep(2 * SOON);
    let claim = mine(claims.ask(&run).unwrap());
    assert_eq!(fs::read_to_string(claim.attempt().path().join("notes")).unwrap(), "late");
    work(claim.attempt(), "notes", "mine");
    // It goes on writing, and sees that its claim is another's.
    work(late.attempt(), "notes", "too late");
    assert!(!late.beat().unwrap());
    assert!(!late.rest().unwrap());
    assert!(claim.rest().unwrap());
    assert_eq!(fs::read_to_string(run.path().join("notes")).unwrap(), "mine");
    assert!(!folder.path().join(WORKING).exists());
}

/// The other order: the one that took over is done before the first one wakes up, and somebody asks again under the first
/// one's number.
#[test]
fn a_number_that_comes_again_is_not_taken_for_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let mut late = mine(Claims::new(SOON).ask(&run).unwrap());
    from_elsewhere(&late);
    let mut claims = Claims::new(SOON);
    assert!(is_elsewhere(&claims.ask(&run).unwrap()));
    std::thread::sleep(2 * SOON);
    let claim = mine(claims.ask(&run).unwrap());
    work(claim.attempt(), "notes", "mine");
    assert!(claim.rest().unwrap());
    let again = mine(claims.ask(&run).unwrap());
    assert!([&again, &late].iter().all(|claim| claim.token.attempt().starts_with("1-")));
    assert!(!late.beat().unwrap() && !late.rest().unwrap());
    assert!(again.rest().unwrap());
    assert_eq!(fs::read_to_string(run.path().join("notes")).unwrap(), "mine");
}

#[test]
fn a_holder_that_beats_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let mut claim = mine(Claims::new(SOON).ask(&run).unwrap());
    let mut claims = Claims::new(SOON);
    let until = Instant::now() + 8 * SOON;
    while Instant::now() < until {
        assert!(claim.beat().unwrap());
        assert!(is_elsewhere(&claims.ask(&run).unwrap()));
        std::thread::sleep(SOON / 12);
    }
}

#[test]
fn what_is_no_run_is_not_moved() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    fs::create_dir(run.path()).unwrap();
    fs::write(run.path().join("mine.txt"), "x").unwrap();
    assert!(matches!(Claims::default().ask(&run), Err(RunError::NotARun { .. })));
    assert!(run.path().join("mine.txt").is_file());
    // Nor one that somebody trains by hand at this moment.
    fs::remove_dir_all(run.path()).unwrap();
    let lock = run.create(&config()).unwrap();
    assert!(is_elsewhere(&Claims::default().ask(&run).unwrap()));
    drop(lock);
    mine(Claims::default().ask(&run).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Many at once on few names: never do two hold one.
    #[test]
    fn two_never_hold_one_name(threads in 2usize..6, names in 1usize..4) {
        let folder = tempfile::tempdir().unwrap();
        let held: Vec<std::sync::atomic::AtomicUsize> = (0..names).map(|_| 0.into()).collect();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (folder, held) = (folder.path(), &held);
                scope.spawn(move || {
                    let mut claims = Claims::default();
                    for turn in 0..20 {
                        let at = (thread + turn) % names;
                        if let Some(token) = claims.token(folder, &format!("name{at}")).unwrap() {
                            std::thread::yield_now();
                            assert_eq!(held[at].fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                            held[at].fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                            token.give_back().unwrap();
                        }
                    }
                });
            }
        });
    }
}
