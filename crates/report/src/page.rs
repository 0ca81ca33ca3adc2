//! `report.html`: a result as one file that people forward to each other. It works from disk, without a network.
//!
//! The page is a skeleton (`page/page.html`), style sheets and plain scripts, joined at compile time, and the result
//! itself as JSON in a `<script type="application/json">`. Everything that comes from users reaches the page as text:
//! here through `escaped` and `for_script`, in the scripts through `textContent`. Its content security policy allows
//! no request to anywhere, and no script but these, by their hashes.

mod context;
mod run;

use std::{collections::HashSet, sync::LazyLock};

use base64::{Engine, prelude::BASE64_STANDARD};
use data::metrics::{DECIDING, OBJECTIVE};
use runs::{
    forward::ForwardPass,
    heads::{ExperimentHeads, MeasureInfo, RoleInfo},
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{
    figures::{
        Figure, Section,
        colours::{self, Line, Mark},
    },
    results::{Registered, Results, Timings},
    text::{capital, escaped},
};

pub use context::{Column, Machine, MetricInfo, PageContext, RunCurve, RunCurves, SourceFile, TaskFacts};
pub use run::{RunReport, RunReportError};

/// The page's name in its folder.
pub const FILE: &str = "report.html";

const SKELETON: &str = include_str!("page/page.html");
const GLOSSARY: &str = include_str!("page/glossary.html");

const STYLES: [&str; 3] =
    [include_str!("page/vendor/uPlot.min.css"), include_str!("page/style.css"), include_str!("page/parts.css")];

/// Runs before anything is painted.
const THEME: &str = include_str!("page/theme.js");

/// In the order in which they need each other; `main.js` starts them.
const SCRIPTS: [&str; 22] = [
    include_str!("page/vendor/uPlot.iife.min.js"),
    include_str!("page/dom.js"),
    include_str!("page/tips.js"),
    include_str!("page/table.js"),
    include_str!("page/save.js"),
    include_str!("page/model.js"),
    include_str!("page/chart.js"),
    include_str!("page/verdict.js"),
    include_str!("page/plots.js"),
    include_str!("page/curves.js"),
    include_str!("page/figures.js"),
    include_str!("page/multiples.js"),
    include_str!("page/ledger.js"),
    include_str!("page/maps.js"),
    include_str!("page/answers.js"),
    include_str!("page/explorer.js"),
    include_str!("page/forward.js"),
    include_str!("page/pruning.js"),
    include_str!("page/cards.js"),
    include_str!("page/tables.js"),
    include_str!("page/repeat.js"),
    include_str!("page/main.js"),
];

/// All scripts as one, in strict mode and with nothing global. They begin after the first paint: title and verdict are there
/// without them, and a large result takes a moment to read.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    format!("\"use strict\";\nrequestAnimationFrame(() => setTimeout(() => {{\n{}\n}}));", SCRIPTS.join("\n"))
});

/// The data of a page; see `page/model.js` for how it is read.
#[derive(Serialize)]
struct Data<'a> {
    /// For names of files.
    title: &'a str,
    /// Of an experiment.
    results: Option<&'a Results>,
    timings: Option<&'a Timings>,
    registered: Option<&'a Registered>,
    /// Of a single run.
    run: Option<&'a RunReport>,
    context: &'a PageContext,
    /// The primary metric; of a single run, which has none, the usual one.
    deciding: Deciding,
    /// Keys of what training makes small, and of what stands for a model in short.
    objective: &'static str,
    usual: &'static str,
    arms: Vec<ArmStyle<'a>>,
    /// See [`Results::at_common_rates`].
    common_rates: Vec<(f64, Vec<(String, f64)>)>,
    /// What the heads do, where that was analysed; a single run stands in it as an experiment of one arm.
    heads: Option<&'a ExperimentHeads>,
    /// One sample through the model of a single run, step by step.
    forward: Option<&'a ForwardPass>,
}

/// What decides.
#[derive(Serialize)]
struct Deciding {
    /// Of the [`MetricInfo`].
    key: String,
    words: String,
}

/// How an arm is drawn.
#[derive(Serialize)]
struct ArmStyle<'a> {
    name: &'a str,
    label: &'a str,
    colour: &'a str,
    /// As SVG's `stroke-dasharray`.
    dash: &'a str,
    /// What stands on its line.
    mark: Mark,
}

/// What a page is called, and what it says first.
struct Head<'a> {
    /// The answer, as a title.
    title: &'a str,
    /// The answer in full.
    description: String,
    lead: String,
    sentences: Vec<&'a str>,
    /// What a reader must not miss beside them.
    warnings: Vec<String>,
}

/// The page of an experiment, which shows the figures that belong there as they are.
pub fn of_experiment(
    results: &Results,
    timings: Option<&Timings>,
    context: &PageContext,
    heads: Option<&ExperimentHeads>,
    figures: &[Figure],
) -> String {
    let styles = results.arms.iter().zip(colours::of_arms(results));
    let data = Data {
        title: &results.name,
        results: Some(results),
        timings,
        registered: results.registered.as_ref(),
        run: None,
        context,
        deciding: Deciding { key: results.metric.key.clone(), words: results.metric.words().into() },
        objective: OBJECTIVE.key,
        usual: DECIDING.key,
        common_rates: results.at_common_rates(),
        arms: styles.map(|(arm, line)| style(&arm.name, &arm.label, line)).collect(),
        heads,
        forward: None,
    };
    let lead = match &results.about.question {
        Some(question) => format!("{}: {question}", results.name),
        None => results.name.clone(),
    };
    let head = Head {
        title: &results.answer.title,
        description: results.answer.sentence.clone(),
        lead,
        sentences: vec![&results.answer.sentence],
        warnings: results.warnings(),
    };
    html(&data, &head, figures)
}

fn style<'a>(name: &'a str, label: &'a str, line: Line) -> ArmStyle<'a> {
    let Line { colour, dash, mark } = line;
    ArmStyle { name, label, colour, dash, mark }
}

/// The page of a single run.
pub fn of_run(report: &RunReport, heads: Option<&ExperimentHeads>, forward: Option<&ForwardPass>) -> String {
    let data = Data {
        title: &report.name,
        results: None,
        timings: None,
        registered: None,
        run: Some(report),
        context: &report.context,
        deciding: Deciding { key: DECIDING.key.into(), words: DECIDING.words.into() },
        objective: OBJECTIVE.key,
        usual: DECIDING.key,
        common_rates: vec![],
        arms: vec![style(&report.arm, &report.label, colours::FIRST)],
        heads,
        forward,
    };
    let lead = report.lead();
    let head =
        Head { title: &report.name, description: report.description(), lead, sentences: vec![], warnings: vec![] };
    html(&data, &head, &[])
}

fn html(data: &Data, head: &Head, figures: &[Figure]) -> String {
    // Only maps with keys that aren't text could fail, and there are none.
    let json = for_script(&exact(&serde_json::to_string(data).unwrap_or_default()));
    let sentences = head.sentences.iter().map(|sentence| format!("<p>{}</p>", escaped(sentence)));
    let warnings =
        head.warnings.iter().map(|warning| format!("<p class=\"warning\">{}.</p>", escaped(&capital(warning))));
    let sentences: String = sentences.chain(warnings).collect();
    let hashes =
        [THEME, SCRIPT.as_str()].map(|script| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(script))));
    let parts = [
        ("TITLE", escaped(head.title)),
        ("DESCRIPTION", escaped(&head.description)),
        ("HASHES", hashes.join(" ")),
        ("STYLE", STYLES.join("\n")),
        ("THEME", THEME.to_string()),
        ("LEAD", escaped(&head.lead)),
        ("SENTENCES", sentences),
        ("DIFFERENCES", shown(figures, Section::Differences)),
        ("SETTINGS", shown(figures, Section::Settings)),
        ("GLOSSARY", fill(GLOSSARY, &[("METRICS", metrics_glossary(&data.context.metrics))])),
        ("MEASURES", data.heads.map_or(String::new(), glossary)),
        ("DATA", json),
        ("SCRIPT", SCRIPT.clone()),
    ];
    fill(SKELETON, &parts)
}

/// The figures of a section, each in a frame that scrolls by itself where the page is narrow.
fn shown(figures: &[Figure], section: Section) -> String {
    let figures = figures.iter().filter(|figure| figure.section == Some(section));
    let frame = |Figure { name, svg, .. }: &Figure| {
        format!(
            "<figure class=\"drawn\" data-name=\"{name}\"><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
             aria-label=\"{name} (figure)\">{svg}</div></figure>\n"
        )
    };
    figures.map(frame).collect()
}

/// What the metrics say.
fn metrics_glossary(metrics: &[MetricInfo]) -> String {
    let entry = |MetricInfo { key, words, about, .. }: &MetricInfo| {
        let key = escaped(key);
        format!("<div id=\"{key}\"><dt>{}</dt><dd>{}</dd></div>\n", escaped(&capital(words)), escaped(about))
    };
    metrics.iter().map(entry).collect()
}

/// What the measures and the roles of heads say, each once.
fn glossary(heads: &ExperimentHeads) -> String {
    let mut measures: Vec<&MeasureInfo> = heads.arms.iter().flat_map(|arm| &arm.measures).collect();
    let mut seen = HashSet::new();
    measures.retain(|measure| seen.insert(&measure.key));
    let entry = |MeasureInfo { key, title, glossary, .. }: &MeasureInfo| {
        let (key, title, glossary) = (escaped(key), escaped(&capital(title)), escaped(glossary));
        format!("<div id=\"measure-{key}\"><dt>{title}</dt><dd>{glossary}</dd></div>\n")
    };
    let mut roles: Vec<&RoleInfo> = heads.arms.iter().flat_map(|arm| &arm.roles).collect();
    let mut seen = HashSet::new();
    roles.retain(|role| seen.insert(&role.key));
    let role = |RoleInfo { key, title, rule }: &RoleInfo| {
        let (key, title, rule) = (escaped(key), escaped(title), escaped(&capital(rule)));
        format!("<div id=\"role-{key}\"><dt>Role: {title}</dt><dd>{rule}.</dd></div>\n")
    };
    let measures: String = measures.into_iter().map(entry).collect();
    measures + &roles.into_iter().map(role).collect::<String>()
}

/// Puts each part where the skeleton has `{{NAME}}`, in one pass: a part that holds such a text itself stays as it is.
fn fill(skeleton: &str, parts: &[(&str, String)]) -> String {
    let mut page = String::with_capacity(skeleton.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = skeleton;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page += before;
        page += parts.iter().find(|(part, _)| *part == name).map_or("", |(_, text)| text.as_str());
        rest = after;
    }
    page + rest
}

/// JSON whose whole numbers a browser reads exactly: those above 2^53, of which two may be one for it, become texts.
fn exact(json: &str) -> String {
    const MOST: u64 = 1 << 53;
    let mut text = String::with_capacity(json.len());
    let (mut rest, mut in_text) = (json, false);
    let ends = |c: char| matches!(c, ',' | ']' | '}');
    while let Some(first) = rest.chars().next() {
        let length = match first {
            // What is escaped ends no text.
            '\\' if in_text => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            '"' => {
                in_text = !in_text;
                1
            }
            '0'..='9' | '-' if !in_text => rest.find(ends).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let Some((token, after)) = rest.split_at_checked(length) else { break };
        let size = token.trim_start_matches('-');
        let is_large = !in_text && size.len() > 15 && size.parse::<u64>().is_ok_and(|size| size > MOST - 1);
        if is_large {
            text.extend(["\"", token, "\""])
        } else {
            text += token
        }
        rest = after;
    }
    text
}

/// JSON that can stand in a `<script>`: no text in it can end the element or begin a comment.
fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_script_holds_no_markup_and_reads_back() {
        let hostile = "</script><!-- \u{2028} <img onerror>";
        let safe = for_script(&serde_json::to_string(hostile).unwrap());
        assert!(!safe.contains('<') && !safe.contains('\u{2028}'));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
    }

    /// jaeger-ui#973: two ids above 2^53 were one in the page.
    #[test]
    fn jaeger_ui_973_large_numbers_stay_what_they_are() {
        let given = serde_json::json!({
            "seeds": [9_007_199_254_740_991_u64, 9_007_199_254_740_992_u64, 9_007_199_254_740_993_u64, u64::MAX, i64::MIN],
            "text": "a \"9007199254740993\" \\", "float": 0.123_456_789_012_345_68, "large": 1e300, "é": 12_345_678_901_234_567_u64,
        });
        let read: serde_json::Value = serde_json::from_str(&exact(&given.to_string())).unwrap();
        let seeds = serde_json::json!([
            9_007_199_254_740_991_u64,
            "9007199254740992",
            "9007199254740993",
            "18446744073709551615",
            "-9223372036854775808",
        ]);
        assert_eq!((&read["seeds"], &read["é"]), (&seeds, &serde_json::json!("12345678901234567")));
        for key in ["text", "float", "large"] {
            assert_eq!(read[key], given[key]);
        }
        assert_eq!(exact("12345678901234567"), "\"12345678901234567\"");
    }

    #[test]
    fn a_part_that_looks_like_a_place_stays_text() {
        let parts = [("A", "{{B}}".to_string()), ("B", "b".to_string())];
        assert_eq!(fill("<{{A}}|{{B}}|{{C}}>", &parts), "<{{B}}|b|>");
    }

    #[test]
    fn the_scripts_never_make_markup_of_data_and_cannot_end_their_element() {
        for script in SCRIPTS.iter().skip(1).chain([&THEME]) {
            for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "</script"] {
                assert!(!script.contains(forbidden), "{forbidden}");
            }
        }
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
    }
}
