//! What people read.

use super::*;

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// [`SMALL`] with something replaced.
fn with(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    message(&SMALL.replace(from, to))
}

#[test]
fn a_typo_shows_the_nearest_key() {
    insta::assert_snapshot!(with("baseline", "basline"), @r#"
    unknown key `basline`
     --> experiments/small.toml:1:1
      |
    1 | basline = "h1"
      | ^^^^^^^
      = help: did you mean `baseline`?
    "#);
    insta::assert_snapshot!(with("margin", "margins"), @r"
    unknown key `metric.margins`
     --> experiments/small.toml:3:1
      |
    3 | margins = 0.02
      | ^^^^^^^
      = help: did you mean `metric.margin`?
    ");
}

#[test]
fn a_typo_in_an_arm_shows_its_line_here() {
    insta::assert_snapshot!(with("model.heads = 1", "model.hedas = 1"), @r"
    unknown key `model.hedas`
     --> experiments/small.toml:7:7
      |
    7 | model.hedas = 1
      |       ^^^^^
      = help: did you mean `model.heads`?
    ");
    insta::assert_snapshot!(with("model.heads = 1", "modle.heads = 1"), @r"
    unknown section `[arms.h1.modle]`
     --> experiments/small.toml:7:1
      |
    7 | modle.heads = 1
      | ^^^^^
      = help: did you mean `arms.h1.model`?
    ");
    insta::assert_snapshot!(with("model.heads = 1", "model.heads = 3"), @r"
    `model.heads`: d_model = 64 can't be split into heads = 3 of equal width: 64 / 3 isn't whole
     --> experiments/small.toml:7:7
      |
    7 | model.heads = 3
      |       ^^^^^
    ");
    insta::assert_snapshot!(with("model.heads = 1", "model.heads = \"one\""), @r#"
    `model.heads = "one"`: expected a whole number, 0 or more, found text
     --> experiments/small.toml:7:7
      |
    7 | model.heads = "one"
      |       ^^^^^
    "#);
}

#[test]
fn names_and_seeds_are_not_an_arm_s() {
    insta::assert_snapshot!(with("model.heads = 1", "seed = 1"), @r"
    `arms.h1.seed`: seeds are the experiment's: `seeds = ...` at the top
     --> experiments/small.toml:7:1
      |
    7 | seed = 1
      | ^^^^
    ");
}

#[test]
fn an_unknown_baseline_lists_the_arms() {
    insta::assert_snapshot!(with("baseline = \"h1\"", "baseline = \"h4\""), @r#"
    `baseline = "h4"`: unknown arm `h4`
     --> experiments/small.toml:1:1
      |
    1 | baseline = "h4"
      | ^^^^^^^^
      = help: did you mean `h1`?
    "#);
}

#[test]
fn the_margin_is_set_before_the_runs() {
    insta::assert_snapshot!(with("margin = 0.02\n", ""), @r"
    missing key `metric.margin`
     --> experiments/small.toml:2:2
      |
    2 | [metric]
      |  ^^^^^^
      = help: the smallest difference that matters, such as 0.02, is set before the runs
    ");
}

#[test]
fn few_seeds_need_a_reason() {
    insta::assert_snapshot!(with("baseline", "seeds = 3\nbaseline"), @r#"
    `seeds`: 3 pairs are fewer than 10: say why in `why_seeds = "..."`
     --> experiments/small.toml:1:1
      |
    1 | seeds = 3
      | ^^^^^
    "#);
}

#[test]
fn tuning_seeds_are_not_reporting_seeds() {
    insta::assert_snapshot!(with("[metric]", "[tuning]\nlr = [1e-3]\nseeds = [8, 9, 10]\n[metric]"), @r"
    `tuning.seeds`: seeds `8` and `9` are also used by the reported runs: learning rates are chosen on seeds of their own
     --> experiments/small.toml:4:1
      |
    4 | seeds = [8, 9, 10]
      | ^^^^^
    ");
}

#[test]
fn a_learning_rate_passes_the_config_s_checks() {
    insta::assert_snapshot!(with("[metric]", "[tuning]\nlr = [1e-3, -1.0]\nseeds = [100]\n[metric]"), @r"
    `tuning.lr`: `train.lr`: lr = -1 is out of range: above 0, at most 1000
     --> experiments/small.toml:3:13
      |
    3 | lr = [1e-3, -1.0]
      |             ^^^^
    ");
}

#[test]
fn a_base_that_is_not_there_shows_the_nearest_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/new.toml");
    let text = SMALL
        .replace("[base.task]\nkind = \"registers\"\n", "")
        .replace("baseline", "base = \"../configs/h9.toml\"\nbaseline");
    let error = Experiment::parse(&text, &path).unwrap_err().to_string();
    assert!(error.contains("configs/h9.toml: no such config file") && error.contains("did you mean"), "{error}");
    assert!(error.contains("new.toml:1:8"), "{error}");
}

#[test]
fn no_task_at_all_says_what_to_write() {
    insta::assert_snapshot!(with("[base.task]\nkind = \"registers\"\n", ""), @r#"
    missing section `[task]`
     --> experiments/small.toml:4:7
      |
    4 | [arms.h1]
      |       ^^
      = help: add the lines `[task]` and `kind = "..."`, with one of `registers`, `mqar`, `reverse`, `sort`, `induction`, `selective_copy`, `d_retrieval`, `farthest`, `text`, `records`, `series` and `vectors`
      = help: or name a config file: `base = "../configs/h8.toml"`
    "#);
}

#[test]
fn other_seeds_are_not_matched() {
    insta::assert_snapshot!(with("[arms.h8]\n", "[arms.h8]\nseed_offset = 1000\n"), @r#"
    `arms`: `h1` and `h8` have different seeds, so other data and weights: that is regime = "free"
     --> experiments/small.toml:6:2
      |
    6 | [arms.h1]
      |  ^^^^
    "#);
    insta::assert_snapshot!(message(&format!("regime = \"free\"\n{SMALL}seed_offset = 5\n")), @r"
    `arms`: with `seed_offset`, seed 5 belongs to `h1` in one pair and to `h8` in another: arms must have the same seeds or none in common
     --> experiments/small.toml:7:2
      |
    7 | [arms.h1]
      |  ^^^^
    ");
}

#[test]
fn computed_widths_are_not_set_too() {
    insta::assert_snapshot!(message(&format!("regime = \"params\"\nmatch_d_ff = true\n{SMALL}model.d_ff = 9\n")), @r"
    `model.d_ff`: with match_d_ff = true the arms' d_ff is computed
      --> experiments/small.toml:11:7
       |
    11 | model.d_ff = 9
       |       ^^^^
    ");
}

#[test]
fn one_arm_is_no_comparison() {
    insta::assert_snapshot!(with("[arms.h8]\n", ""), @r"
    `arms`: a comparison has 2 to 64 arms, in `[arms.NAME]` or `[grid]`; here there are 1
     --> experiments/small.toml:6:2
      |
    6 | [arms.h1]
      |  ^^^^
    ");
}
