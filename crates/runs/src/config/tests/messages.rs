//! What people read.

use super::*;

fn message(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    Config::parse_with(text, "configs/h8.toml", &overrides).unwrap_err().to_string()
}

#[test]
fn a_typo_shows_the_line_and_the_nearest_key() {
    insta::assert_snapshot!(message(
        "name = \"h8\"\n\n[task]\nkind = \"registers\"\n\n[model]\nd_model = 64\nhedas = 8   # eight\n", &[]
    ), @r"
    unknown key `model.hedas`
     --> configs/h8.toml:8:1
      |
    8 | hedas = 8   # eight
      | ^^^^^
      = help: did you mean `model.heads`?
    ");
}

#[test]
fn several_typos_are_shown_at_once() {
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\nregisers = 3\n[trian]\nlr = 1\n", &[]), @r"
    unknown key `task.regisers`
     --> configs/h8.toml:3:1
      |
    3 | regisers = 3
      | ^^^^^^^^
      = help: did you mean `task.registers`?
    unknown section `[trian]`
     --> configs/h8.toml:4:2
      |
    4 | [trian]
      |  ^^^^^
      = help: did you mean `train`?
    ");
}

/// pytorch#28719: the error names both numbers.
#[test]
fn pytorch_28719_indivisible_width_names_both_numbers() {
    insta::assert_snapshot!(message(
        "[task]\nkind = \"registers\"\n[model]\nd_model = 30\nheads = 4\n", &[]
    ), @r"
    `model.heads`: d_model = 30 can't be split into heads = 4 of equal width: 30 / 4 isn't whole
     --> configs/h8.toml:5:1
      |
    5 | heads = 4
      | ^^^^^
    ");
    // The width alone, beside the default number of heads.
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\n[model]\nd_model = 30\n", &[]), @r"
    `model.heads`: d_model = 30 can't be split into heads = 8 of equal width: 30 / 8 isn't whole
     --> configs/h8.toml:4:1
      |
    4 | d_model = 30
      | ^^^^^^^
    ");
}

#[test]
fn an_override_is_shown_as_it_was_given() {
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\n", &["model.hedas=4"]), @r"
    unknown key `model.hedas`
     --> --set model.hedas=4 (over configs/h8.toml)
      = help: did you mean `model.heads`?
    ");
}

#[test]
fn an_override_that_does_not_fit_the_file_is_shown() {
    let text = "[task]\nkind = \"registers\"\n[model]\nheads = 8\n";
    insta::assert_snapshot!(message(text, &["model.d_model=30"]), @r"
    `model.heads`: d_model = 30 can't be split into heads = 8 of equal width: 30 / 8 isn't whole
     --> --set model.d_model=30 (over configs/h8.toml)
    ");
}

#[test]
fn a_changed_kind_names_the_keys_it_does_not_know() {
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\nvalues = 3\n", &["task.kind=mqar"]), @r"
    unknown key `task.values`
     --> configs/h8.toml:3:1
      |
    3 | values = 3
      | ^^^^^^
      = help: it belongs to the task `registers`, but the task is `mqar` by `--set task.kind=mqar`
      = help: valid in `[task]` are `kind`, `vocab`, `seq_len`, `pairs`, `power_a`, `fill`, `train_examples`, `validation_examples` and `test_examples`
    ");
}

#[test]
fn wrong_types_are_named_in_plain_words() {
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\n[train]\nbatch_size = \"64\"\n", &[]), @r#"
    `train.batch_size = "64"`: expected a whole number, 0 or more, found text
     --> configs/h8.toml:4:1
      |
    4 | batch_size = "64"
      | ^^^^^^^^^^
      = help: write 64 without quotes
    "#);
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\n[train]\nsteps = -800\n", &[]), @r"
    `train.steps = -800`: expected a whole number, 0 or more, found a negative number
     --> configs/h8.toml:4:1
      |
    4 | steps = -800
      | ^^^^^
    ");
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\n[model]\npositions = \"learnt\"\n", &[]), @r#"
    `model.positions = "learnt"`: unknown positions `learnt`
     --> configs/h8.toml:4:1
      |
    4 | positions = "learnt"
      | ^^^^^^^^^
      = help: did you mean `learned`?
    "#);
}

#[test]
fn impossible_values_name_their_bounds() {
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\n[train]\nlr = nan\n", &[]), @r"
    `train.lr`: lr = NaN is out of range: above 0, at most 1000
     --> configs/h8.toml:4:1
      |
    4 | lr = nan
      | ^^
    ");
    insta::assert_snapshot!(message("[task]\nkind = \"mqar\"\nseq_len = 8\npairs = 3\n", &[]), @r"
    `task.pairs`: pairs = 3 do not fit into seq_len = 8: 4 * pairs must be at most seq_len
     --> configs/h8.toml:4:1
      |
    4 | pairs = 3
      | ^^^^^
    ");
}

/// Both sides are named: the architecture and the task.
#[test]
fn an_architecture_that_does_not_fit_the_task_names_both() {
    insta::assert_snapshot!(message("[task]\nkind = \"reverse\"\n\n[model]\nheads = 4\n", &[]), @r#"
    `model.architecture`: architecture = "decoder" can't read the source of this task, which needs architecture = "encoder_decoder" (task.kind = "reverse")
     --> configs/h8.toml:4:2
      |
    4 | [model]
      |  ^^^^^
    "#);
    let text = "[task]\nkind = \"registers\"\n\n[model]\narchitecture = \"encoder_decoder\"\n";
    insta::assert_snapshot!(message(text, &[]), @r#"
    `model.architecture`: architecture = "encoder_decoder" needs a task with a source for its encoder, and this task has none (task.kind = "registers")
     --> configs/h8.toml:5:1
      |
    5 | architecture = "encoder_decoder"
      | ^^^^^^^^^^^^
    "#);
    let text = "[task]\nkind = \"sort\"\n\n[model]\narchitecture = \"encoder_decoder\"\ncausal = false\n";
    insta::assert_snapshot!(message(text, &[]), @r#"
    `model.causal`: architecture = "encoder_decoder" needs causal = true: its decoder would read the tokens that it is to name
     --> configs/h8.toml:6:1
      |
    6 | causal = false
      | ^^^^^^
    "#);
}

#[test]
fn a_missing_task_says_what_to_write() {
    insta::assert_snapshot!(message("name = \"h8\"\n", &[]), @r#"
    missing section `[task]`
     --> configs/h8.toml
      = help: add the lines `[task]` and `kind = "..."`, with one of `registers`, `mqar`, `reverse`, `sort`, `induction`, `selective_copy`, `d_retrieval`, `farthest`, `text`, `records`, `series` and `vectors`
    "#);
}

#[test]
fn broken_toml_shows_where() {
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\n\n[model]\nheads 8\n", &[]), @r"
    not valid TOML: key with no value, expected `=`
     --> configs/h8.toml:5:7
      |
    5 | heads 8
      |       ^
    ");
    insta::assert_snapshot!(message("[task]\nkind = \"registers\"\nvalues = 3\nvalues = 4\n", &[]), @r"
    `task.values` is set twice
     --> configs/h8.toml:4:1
      |
    4 | values = 4
      | ^^^^^^
    ");
}
