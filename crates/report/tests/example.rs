//! The example of the guide says what the guide says.

use headcount_report::{
    table::{Options, Table},
    terminal,
};

#[test]
fn the_table_of_the_guide() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/heads.csv")).unwrap();
    let options = Options { threshold: Some(0.95), sweep: Some("head".into()), ..Options::new("heads", 0.02) };
    let results = Table::read(&text, &options).unwrap().results().unwrap();
    insta::assert_snapshot!(terminal::answer(&results), @r"
    This task needs 4 heads: 2 reach 0.764, 4 reach 0.993, more add nothing above the margin of 0.02 (10 pairs).

    heads

    accuracy       runs    mean      sd     IQM    solved    enough
    h1 (baseline)    10  0.5904  0.0062  0.5916   0 of 10        no
    h2               10  0.7638  0.0324  0.7655   0 of 10        no
    h4               10  0.9927  0.0025  0.9928  10 of 10       yes
    h8               10  0.9925  0.0020  0.9927  10 of 10       yes
    ");
    let guide = include_str!("../../../docs/comparing.md");
    for line in terminal::answer(&results).lines() {
        assert!(guide.contains(line.trim_end()), "{line}");
    }
}
