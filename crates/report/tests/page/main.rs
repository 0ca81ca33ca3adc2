//! `report.html` as a reader meets it: in a browser, with mouse and keyboard, wide and narrow, light and dark.
//!
//! Needs Chromium; without one the tests say that they are skipped, unless HEADCOUNT_REQUIRE_BROWSER is set.

mod answers;
mod browser;
mod sample;
#[path = "../synthetic/mod.rs"]
mod synthetic;
#[path = "../synthetic/tuning.rs"]
mod tuning;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use browser::Browser;
use data::metrics::{ACCURACY, SplitMetric};
use headcount_report::{
    ExperimentReport, Results, TunedExperiment,
    page::{self, RunReport},
    table::{Options, Table},
    terminal,
};
use runs::{RunDirectory, heads::HeadAnalysis};
use serde_json::{Value, json};
use synthetic::{Kind, Made, make};
use tuning::make_tuning;

const SPLIT: &str = "[arms.h1]\nmodel.heads = 1\n[arms.h8]\nmodel.heads = 8\n";
const GRID: &str = "[grid]\n\"model.heads\" = [1, 2, 4, 8, 16]\n";

/// A page on disk with what it was made from.
struct Page {
    made: Made,
    results: Results,
    path: PathBuf,
}

impl Page {
    /// With heads: as many as an arm's name says, in `layers` layers.
    fn new(made: Made, layers: usize) -> Self {
        Self::with(made, layers, |arm| arm.trim_start_matches('h').parse().unwrap_or(2))
    }

    fn with(made: Made, layers: usize, heads: impl Fn(&str) -> usize) -> Self {
        let report = report(&made);
        let heads = (layers > 0).then(|| sample::heads(&report.results, layers, heads));
        let report = report.with_heads(heads);
        report.write(&made.folder).unwrap();
        let path = made.folder.join(page::FILE);
        Self { made, results: report.results, path }
    }
}

fn report(made: &Made) -> ExperimentReport {
    let runs = TunedExperiment::read(made.experiment.clone(), &made.folder).read_runs();
    ExperimentReport::new(&runs, false).unwrap()
}

fn h1_vs_h8() -> Page {
    Page::new(make("h1-vs-h8", "", SPLIT, |run| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } }), 1)
}

/// Opens a page in a new browser, 1280 wide and light; `None` where there is no browser.
fn open(path: &Path) -> Option<Browser> {
    let mut browser = browser::start()?;
    browser.looks(1280, false);
    browser.open(path);
    Some(browser)
}

/// Leaves a page in the folder that HEADCOUNT_PAGES names, to be looked at.
fn keep(kind: &str, path: &Path) {
    if let Some(folder) = std::env::var_os("HEADCOUNT_PAGES") {
        fs::copy(path, Path::new(&folder).join(format!("{kind}.html"))).unwrap();
    }
}

/// The cells of the body of every table in a section.
fn tables(browser: &mut Browser, section: &str) -> Vec<Vec<Vec<String>>> {
    let value = browser.value(&format!(
        "[...document.querySelectorAll('#{section} table')].map((table) => [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)))"
    ));
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_numbers_on_the_page_are_those_of_the_results() {
    let page = h1_vs_h8();
    let Some(mut browser) = open(&page.path) else { return };
    let results = &page.results;
    let embedded = browser.value("JSON.parse(document.getElementById('data').textContent).results");
    assert_eq!(&serde_json::from_value::<Results>(embedded).unwrap(), results);

    assert_eq!(browser.text("#sentences > p"), results.answer.sentence);
    assert_eq!(browser.text("h1"), results.answer.title);
    assert_eq!(browser.value("document.title"), json!(format!("{} · Headcount", results.answer.title)));
    let description = browser.value("document.querySelector('meta[name=description]').content");
    assert_eq!(description, json!(results.answer.sentence));
    let verdict = &results.findings.verdicts[0];
    let beside = browser.text("#verdict .verdict .beside");
    assert_eq!(beside.to_lowercase(), format!("{}.", verdict.solving.as_ref().unwrap()).to_lowercase());
    assert_eq!(browser.text("#verdict .badge"), "8 heads: better");

    let number = |value: Option<f64>| value.map_or("–".to_string(), |value| format!("{value:.4}"));
    let shown = tables(&mut browser, "tables");
    for (row, arm) in shown[0].iter().zip(&results.arms) {
        let told = arm.description.as_ref().unwrap();
        let expected = [Some(told.mean), told.standard_deviation, Some(told.interquartile_mean), Some(told.median)];
        assert_eq!(row[1..5], expected.map(number));
    }
    let runs: Vec<_> = results.arms.iter().flat_map(|arm| &arm.runs).collect();
    assert_eq!(shown[1].len(), runs.len());
    for (row, run) in shown[1].iter().zip(runs) {
        assert_eq!(row[1..3], [run.seed.to_string(), "finished".into()]);
        let measured = SplitMetric::all().filter(|metric| run.scores.get(*metric).is_some());
        let expected: Vec<String> = measured.map(|metric| number(run.scores.get(metric))).collect();
        assert_eq!(row[3..7], expected);
        assert_eq!(row[12], run.directory);
    }

    // The curves, at both ends.
    for (key, at) in [("Home", 0), ("End", 16)] {
        browser.press("#read-at", &[key]);
        let shown = tables(&mut browser, "curves");
        for (row, arm) in shown[0].iter().zip(&results.arms) {
            let curve = arm.curves.iter().find(|curve| curve.split == data::Split::Validation).unwrap();
            let band = curve.points[at].bands["accuracy"];
            let expected = format!("{:.4} {:.4} to {:.4}", band.mean, band.lower_quartile, band.upper_quartile);
            assert_eq!(row[1], expected);
        }
    }
    let dots =
        browser.value("[...document.querySelectorAll('#differences circle title')].map((title) => title.textContent)");
    let told = |pair: &statistics::pairs::ScoredPair| format!("seed {}: +{:.4}", pair.seed, pair.arm - pair.baseline);
    assert_eq!(dots, json!(verdict.found.pairs.iter().map(told).collect::<Vec<_>>()));
    let ledger = tables(&mut browser, "ledger");
    assert_eq!(ledger[0][0], ["Parameters", "49,664", "49,664", "equal"]);
    // The card of head 2 in the last arm, which reads register 2.
    let card = browser.text("#cards .card:nth-child(3)");
    assert!(card.contains("Looks up register 2: 0.80 (0.10 untrained)") && card.contains("0.440.95"), "{card}");
    browser.expect_quiet(&page.path);
}

#[test]
fn every_control_works_by_mouse_and_by_keyboard() {
    let page = h1_vs_h8();
    let Some(mut browser) = open(&page.path) else { return };
    let arms = "#curves .readout tbody tr";
    let shown_arms = |browser: &mut Browser| browser.value(&format!("document.querySelectorAll('{arms}').length"));

    // Curves: radio buttons, boxes, list and slider.
    let accuracy = browser.text(arms);
    browser.click("input[name=quantity][value=loss]");
    let loss = browser.text(arms);
    assert_ne!(loss, accuracy);
    browser.press("input[name=quantity][value=loss]", &["ArrowLeft"]);
    assert_eq!(browser.text(arms), accuracy);
    browser.click("input[aria-label='1 head']");
    assert_eq!(shown_arms(&mut browser), json!(1));
    browser.press("input[aria-label='1 head']", &[" "]);
    assert_eq!(shown_arms(&mut browser), json!(2));
    browser.press("input[name=x][value=step]", &["ArrowRight"]);
    assert!(browser.text("output[for=read-at]").contains("1.64M tokens"), "{}", browser.text("output[for=read-at]"));
    browser.click("input[name=x][value=step]");
    assert_eq!(browser.text("output[for=read-at]"), "step 800");
    browser.press("#read-at", &["ArrowLeft", "ArrowLeft"]);
    assert_eq!(browser.text("output[for=read-at]"), "step 700");
    browser.hover("#curves .u-over", 0.5, 0.5);
    browser.wait("/step (3[5-9]|4[0-4])\\d/.test(document.querySelector('output[for=read-at]').textContent)");
    browser.press("#curves select", &["ArrowDown"]);
    let band = page.results.arms[0].curves.iter().find(|curve| curve.split == data::Split::Validation).unwrap();
    browser.press("#read-at", &["End"]);
    let last = band.points.last().unwrap().bands["accuracy"];
    let range = format!("{:.4} to {:.4}", last.minimum, last.maximum);
    assert!(browser.text(arms).contains(&range), "{range}");
    for words in ["log x", "log y", "single seeds"] {
        let find = format!(
            "[...document.querySelectorAll('#curves label')].find((label) => label.textContent === '{words}').querySelector('input')"
        );
        browser.value(&format!("{find}.id = 'box'"));
        browser.press("#box", &[" "]);
        browser.click("#box");
        browser.press("#box", &[" "]);
        assert_eq!(browser.value("document.querySelector('#box').checked"), json!(true));
        browser.value("document.querySelector('#box').removeAttribute('id')");
    }
    browser.click("input[aria-label='seed 3']");

    // Explorer: step, sample, head, cell.
    let title = "#explorer .side:nth-child(2) h3";
    assert!(browser.text(title).contains("after step 800: accuracy 0.925"), "{}", browser.text(title));
    browser.press("#map-step", &["Home"]);
    assert!(browser.text(title).contains("untrained: accuracy 0.125"), "{}", browser.text(title));
    browser.press("#map-step", &["ArrowRight"]);
    assert!(browser.text(title).contains("after step 100"), "{}", browser.text(title));
    browser.press("#map-step", &["End"]);
    let head = |n: usize| format!("#explorer .side:nth-child(2) .heads button:nth-child({n})");
    let pressed = |browser: &mut Browser, n: usize| {
        browser.value(&format!("document.querySelector('{}').getAttribute('aria-pressed')", head(n))) == json!("true")
    };
    browser.click(&head(4));
    assert!(pressed(&mut browser, 4));
    browser.press(&head(3), &["Enter"]);
    assert!(pressed(&mut browser, 3) && !pressed(&mut browser, 4));
    // Head 2 reads the latest write of register 2: for position 31 that is 27, with all of its weight.
    browser.value("document.querySelectorAll('.large canvas')[1].id = 'map'");
    browser.press("#map", &["ArrowDown"; 40]);
    browser.press("#map", &["ArrowRight"; 40]);
    browser.press("#map", &["ArrowLeft"; 4]);
    let cell = browser.text("#cell-1");
    assert!(cell.contains("Position 31 (r") && cell.contains("reads position 27 (r2=3): 1.000"), "{cell}");
    browser.press("#map", &["ArrowUp"; 31]);
    assert!(browser.text("#cell-1").contains("forbidden"));
    browser.hover("#map", 0.2, 0.9);
    browser.wait("!document.querySelector('#cell-1').textContent.includes('forbidden')");
    browser.press("#explorer select", &["ArrowDown"]);
    assert_eq!(browser.value("document.querySelector('#explorer select').value"), json!("1"));
    browser.press("input[name=scaling][value=root]", &["ArrowRight"]);
    assert!(browser.text("#explorer .legend").contains("middle 0.5"));
    browser
        .value("[...document.querySelectorAll('button')].find((button) => button.textContent === 'Play').id = 'play'");
    browser.press("#play", &["Enter"]);
    assert_eq!(browser.text("#play"), "Pause");
    browser.wait("document.querySelector('#play').textContent === 'Play'"); // from untrained to the end

    // Cards of another run.
    let card = browser.text("#cards .card h4");
    browser.press("#cards select", &["Home"]);
    assert_eq!(browser.value("document.querySelectorAll('#cards .card').length"), json!(1));
    assert_eq!(browser.text("#cards .card h4"), card);

    // The theme, and the list of contents.
    browser.click("#theme");
    assert_eq!(browser.value("document.documentElement.dataset.theme"), json!("dark"));
    browser.press("#theme", &["Enter"]);
    assert_eq!(browser.value("document.documentElement.dataset.theme"), json!("light"));
    browser.looks(1280, true);
    assert_eq!(browser.value("document.documentElement.dataset.theme"), json!("light"), "the reader's choice stays");
    browser.open(&page.path);
    assert_eq!(browser.value("document.documentElement.dataset.theme"), json!("light"), "and is remembered");
    browser.press("#contents a[href='#glossary']", &["Enter"]);
    browser.wait("location.hash === '#glossary'");
    browser.expect_quiet(&page.path);
}

/// The cells of a column of the second table of a section.
fn column(browser: &mut Browser, index: usize) -> Vec<String> {
    tables(browser, "tables")[1].iter().map(|row| row[index].clone()).collect()
}

#[test]
fn tables_sort_explain_themselves_and_are_saved() {
    let page = h1_vs_h8();
    let Some(mut browser) = open(&page.path) else { return };
    for width in [1400, 768, 390] {
        browser.looks(width, false);
        browser.open(&page.path);
        browser.value("document.querySelectorAll('#tables table')[1].id = 'runs'");
        let as_made = column(&mut browser, 3);
        let mut sorted: Vec<f64> = as_made.iter().map(|cell| cell.parse().unwrap()).collect();
        sorted.sort_by(f64::total_cmp);
        let texts = |numbers: &[f64]| numbers.iter().map(|number| format!("{number:.4}")).collect::<Vec<_>>();
        browser.press("#runs th:nth-child(4) button", &["Enter"]);
        assert_eq!(column(&mut browser, 3), texts(&sorted), "{width}");
        assert_eq!(browser.value("document.querySelector('#runs th:nth-child(4)').ariaSort"), json!("ascending"));
        browser.press("#runs th:nth-child(4) button", &[" "]);
        sorted.reverse();
        assert_eq!(column(&mut browser, 3), texts(&sorted), "{width}");
        browser.press("#runs th:nth-child(4) button", &["Enter"]);
        assert_eq!(column(&mut browser, 3), as_made, "{width}");
        // By the keyboard, then by the pointer, which leaves.
        assert!(browser.text("#tip").contains("Accuracy"), "{}", browser.text("#tip"));
        browser.hover("#runs th:nth-child(2) button", 0.5, 0.5);
        browser.wait("document.querySelector('#tip').textContent.startsWith('Seed')");
        browser.hover("h1", 0.5, 0.5);
        browser.wait("document.querySelector('#tip').hidden");
        // Headings stay in sight, and where a table is wider than the page that is said.
        let said = "document.querySelector('#runs').closest('.table').querySelector('.hint').hidden";
        let fits = "(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)(document.querySelector('#runs').parentElement)";
        browser.wait(&format!("{said} === {fits}"));
        browser.value("document.querySelector('#runs').parentElement.scrollTo(400, 200)");
        let sticks = "(() => { const frame = document.querySelector('#runs').parentElement.getBoundingClientRect(); \
            const [head, row] = ['thead th', 'tbody th'].map((cell) => document.querySelector(`#runs ${cell}`).getBoundingClientRect()); \
            return Math.abs(head.top - frame.top) < 2 && Math.abs(row.left - frame.left) < 2; })()";
        assert_eq!(browser.value(sticks), json!(true), "{width}");
        // Every number of the narrowest page is in sight when its frame is scrolled to it: none is squeezed.
        let squeezed = "[...document.querySelectorAll('.scroll td')].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length";
        assert_eq!(browser.value(squeezed), json!(0), "{width}");
    }
    let folder = tempfile::tempdir().unwrap();
    browser.download_to(folder.path());
    let mut saved = |index: usize, ending: &str| {
        browser.value(&format!("document.querySelectorAll('#tables .table')[0].querySelectorAll('.save button')[{index}].id = 'take-{index}'"));
        browser.click(&format!("#take-{index}"));
        let path = folder.path().join(format!("h1-vs-h8-Arms.{ending}"));
        let until = Instant::now() + Duration::from_secs(60);
        while !path.is_file() {
            assert!(Instant::now() < until, "{} is not saved", path.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        fs::read_to_string(path).unwrap()
    };
    let mean = format!("{:.4}", page.results.arms[1].description.as_ref().unwrap().mean);
    let csv = saved(0, "csv");
    assert!(csv.starts_with("Arm,mean,sd,IQM") && csv.contains(&format!("\n8 heads,{mean},")), "{csv}");
    let markdown = saved(1, "md");
    assert!(markdown.contains("| --- | ---: |") && markdown.contains(&format!("\n| 8 heads | {mean} |")), "{markdown}");
    let latex = saved(2, "tex");
    assert!(latex.contains("\\toprule") && latex.contains(&format!("  8 heads & {mean} &")), "{latex}");
    assert!(latex.contains("95 \\% interval"), "{latex}");
    browser.expect_quiet(&page.path);
}

/// Hovering at step 320 told the values of step 300, with the line elsewhere.
#[test]
fn what_is_read_is_told_where_it_was_measured() {
    let page = h1_vs_h8();
    let Some(mut browser) = open(&page.path) else { return };
    for across in [0.37, 0.42, 0.61] {
        browser.hover("#curves .u-over", across, 0.5);
        browser.wait("document.querySelector('#curves .u-cursor-x') !== null");
        let step = browser.text("output[for=read-at]").replace("step ", "").parse::<u64>().unwrap();
        assert!(step.is_multiple_of(50), "{step}");
        let off = browser.value(&format!(
            "(() => {{ const over = document.querySelector('#curves .u-over').getBoundingClientRect(), line = document.querySelector('#curves .u-cursor-x').getBoundingClientRect(); \
             return (line.left - over.left) / over.width - {step} / 800; }})()"
        ));
        assert!(off.as_f64().unwrap().abs() < 0.01, "{step}: {off}");
    }
    browser.expect_quiet(&page.path);
}

#[test]
fn hostile_texts_stay_text() {
    let hostile = "</script><img src=x onerror=\"window.hit=1\"><!-- {{DATA}} \u{2028}";
    let mut made = make("h1-vs-h8", "", SPLIT, |_| Kind::Learns { at: 0.9 });
    made.experiment.name = format!("name {hostile}");
    made.experiment.arms[1].label = format!("label {hostile}");
    made.experiment.about.question = Some(format!("question {hostile}"));
    made.experiment.about.prediction = Some(format!("prediction {hostile}"));
    made.experiment.about.result = Some(format!("result {hostile}"));
    made.experiment.why_seeds = Some(format!("why {hostile}"));
    let report = report(&made);
    let mut heads = sample::heads(&report.results, 1, |_| 2);
    for sample in heads.arms.iter_mut().flat_map(|arm| &mut arm.runs).filter_map(|run| run.analysis.as_mut()) {
        sample.shown.iter_mut().flat_map(|sample| &mut sample.tokens).for_each(|token| token.label = hostile.into());
    }
    let path = made.folder.join(page::FILE);
    report.with_heads(Some(heads)).write(&made.folder).unwrap();
    let Some(mut browser) = open(&path) else { return };
    // A line separator in the skeleton itself is a blank.
    assert!(browser.text(".lead").starts_with("name </script><img src=x onerror=\"window.hit=1\"><!-- {{DATA}}"));
    assert!(browser.text("h1").contains("label </script><img src=x onerror=\"window.hit=1\"><!-- {{DATA}}"));
    for text in ["question </script>", "prediction </script>", "result </script>", "why </script>", "label </script>"] {
        let found = browser.value(&format!("document.body.innerText.includes({text:?})"));
        assert_eq!(found, json!(true), "{text}");
    }
    assert_eq!(browser.value("document.images.length + document.querySelectorAll('script').length"), json!(3));
    assert_eq!(browser.value("window.hit ?? null"), Value::Null);
    // And if it did get in, the policy would stop it.
    browser.value("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"window.hit=1\">')");
    browser.wait("document.images[0].complete");
    assert_eq!(browser.value("window.hit ?? null"), Value::Null);
}

/// Rules of axe-core that a page breaks, however little.
fn violations(browser: &mut Browser) -> Value {
    browser.value(include_str!("vendor/axe.min.js"));
    browser.value(
        "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 4).map(({target, failureSummary}) => `${target}: ${failureSummary}`).join('; ')}`))",
    )
}

#[test]
fn no_rule_of_accessibility_is_broken_in_light_and_dark() {
    let page = h1_vs_h8();
    let Some(mut browser) = open(&page.path) else { return };
    for (width, dark) in [(1400, false), (1400, true), (768, false), (390, false), (390, true)] {
        browser.looks(width, dark);
        browser.open(&page.path);
        assert_eq!(browser.value("document.documentElement.dataset.theme"), json!(if dark { "dark" } else { "light" }));
        assert_eq!(violations(&mut browser), json!([]), "{width} {dark}");
    }
}

/// Every kind of page, with a name.
fn pages() -> Vec<(&'static str, Page)> {
    let failures = make("failures", "regime = \"free\"", &format!("{SPLIT}train.lr = 10.0\n"), |run| {
        match (run.arm.as_str(), run.pair) {
            ("h8", 0) => Kind::Diverges { at: 37 },
            ("h8", 1) => Kind::Absent,
            ("h8", 2) => Kind::Stopped { after: 300 },
            ("h1", 3) => Kind::Damaged,
            _ => Kind::Learns { at: 0.6 },
        }
    });
    let tuned = make_tuning("tuned", "[tuning]\nlr = [1e-3, 3e-3, 1e-2]\nseeds = [1000, 1001]", SPLIT, |arm, lr| {
        Kind::Learns { at: if arm == "h8" { 0.99 } else { 0.5 + lr * 10.0 } }
    });
    let again = "[arms.h1]\nlabel = \"8 heads\"\n[arms.h8]\nlabel = \"8 heads again\"\nseed_offset = 1000\n";
    let losses = "[metric]\nname = \"test_loss\"\nmargin = 0.05";
    vec![
        ("pair", h1_vs_h8()),
        (
            "sweep",
            Page::new(
                make("sweep", "baseline = \"h1\"", GRID, |run| Kind::Learns {
                    at: 0.5 + 0.03 * run.config.model.heads as f64,
                }),
                2,
            ),
        ),
        ("failures", Page::new(failures, 0)),
        ("tuned", Page::new(tuned, 0)),
        (
            "again",
            Page::new(
                make("a-a", "regime = \"free\"\nseeds = 60\nrepetitions = 6", again, |_| Kind::Learns { at: 0.7 }),
                0,
            ),
        ),
        ("losses", Page::new(make("losses", losses, SPLIT, |_| Kind::Learns { at: 0.7 }), 1)),
        ("map", Page::new(map(), 0)),
        ("registered", Page::new(registered(), 0)),
    ]
}

/// Layers by heads by registers.
fn map() -> Made {
    let grid = "[grid]\n\"model.heads\" = [1, 2, 4, 8]\n\"model.layers\" = [1, 2, 3]\n\"task.registers\" = [2, 4, 6]\n";
    make("map", "regime = \"free\"\nbaseline = \"h1-l1-registers2\"", grid, |run| Kind::Learns {
        at: if run.config.model.heads >= 4 / run.config.model.layers { 0.99 } else { 0.6 },
    })
}

/// With a prediction, and a margin that was changed when all runs had ended.
fn registered() -> Made {
    let mut made = make("registered", "[predict]\nbetter = \"h8\"", SPLIT, |run| Kind::Learns {
        at: if run.arm == "h8" { 0.99 } else { 0.58 },
    });
    runs::Registration::of(&made.experiment, 0, 20).write(&made.folder).unwrap();
    made.experiment.metric.margin = 0.01;
    runs::Registration::keep(&made.folder, &made.experiment).unwrap();
    made
}

/// Whatever a browser can't count stays apart, in every list and table.
#[test]
fn jaeger_ui_973_seeds_above_2_to_the_53_stay_two() {
    let seeds = [9_007_199_254_740_992_u64, 9_007_199_254_740_993];
    let head = format!("seeds = [{}, {}]\nwhy_seeds = \"a test\"", seeds[0], seeds[1]);
    let page = Page::new(make("seeds", &head, SPLIT, |_| Kind::Learns { at: 0.9 }), 0);
    let Some(mut browser) = open(&page.path) else { return };
    let boxes =
        browser.value("[...document.querySelectorAll('#curves input[aria-label^=seed]')].map((box) => box.ariaLabel)");
    assert_eq!(boxes, json!(seeds.map(|seed| format!("seed {seed}"))));
    let runs = &tables(&mut browser, "tables")[1];
    assert_eq!(
        runs.iter().map(|row| row[1].clone()).collect::<Vec<_>>(),
        [seeds, seeds].concat().iter().map(u64::to_string).collect::<Vec<_>>()
    );
    browser.expect_quiet(&page.path);
}

/// tensorboard#1139: 36 arms, of which some looked alike.
#[test]
fn tensorboard_1139_arms_of_a_large_grid_can_be_told_apart() {
    let page = Page::new(map(), 0);
    let Some(mut browser) = open(&page.path) else { return };
    let swatches = "[...document.querySelectorAll('#curves fieldset .swatch')].map((swatch) => swatch.innerHTML)";
    let count = browser.value(&format!("[{swatches}.length, new Set({swatches}).size]"));
    assert_eq!(count, json!([36, 36]));
    // A plot for each, instead of 36 lines over one another; and a map.
    assert_eq!(browser.value("document.querySelectorAll('#curves .each svg g').length"), json!(36));
    browser.press("input[name=layout][value=each]", &["ArrowLeft"]);
    assert_eq!(browser.value("document.querySelectorAll('#curves canvas').length"), json!(2));
    browser.click("input[name=layout][value=each]");
    assert_eq!(browser.value("document.querySelector('#curves .panels').hidden"), json!(true));
    let map = &tables(&mut browser, "settings")[0];
    assert_eq!((map.len(), map[0].len(), map[0][0].as_str()), (9, 5, "layers 1, registers 2"));
    // Grouped by level: a card each, and one table of all.
    assert_eq!(browser.value("document.querySelectorAll('#sentences > .verdict').length"), json!(9 + 1));
    let map = &tables(&mut browser, "sentences")[0];
    assert_eq!((map.len(), map[0][1].as_str()), (9, "4"));
    browser.expect_quiet(&page.path);
}

#[test]
fn a_table_of_others_has_its_page() {
    let mut text = "arm,seed,step,score\n".to_string();
    for seed in 0..10 {
        for (heads, at) in [(1, 0.6), (2, 0.8), (4, 0.99), (8, 0.99)] {
            for step in [0, 50, 100] {
                let score = at * f64::from(step) / 100.0 + 0.001 * f64::from((seed * heads) % 4);
                text += &format!("h{heads},{seed},{step},{score}\n");
            }
        }
    }
    let options = Options {
        direction: Some(statistics::Direction::HigherIsBetter),
        threshold: Some(0.95),
        sweep: Some("head".into()),
        command: "trainer import <others>.csv".into(),
        ..Options::new("others", 0.02)
    };
    let report = Table::read(&text, &options).unwrap().report().unwrap();
    let folder = tempfile::tempdir().unwrap();
    report.write(folder.path()).unwrap();
    let path = folder.path().join(page::FILE);
    keep("table", &path);
    assert!(!folder.path().join("timings.json").exists());
    let Some(mut browser) = open(&path) else { return };
    assert!(
        browser.text("h1").starts_with("After 100 steps, this task needs 4 heads: 2 reach 0.80"),
        "{}",
        browser.text("h1")
    );
    let shown = browser.value("[...document.querySelectorAll('main > section:not([hidden])')].map(({id}) => id)");
    assert_eq!(shown, json!(["verdict", "curves", "differences", "settings", "tables", "repeat", "glossary"]));
    assert!(browser.text("#repeat").contains("trainer import <others>.csv"));
    for slip in ["[object", "undefined", "NaN", "null", "Infinity"] {
        assert_eq!(browser.value(&format!("document.body.innerText.includes({slip:?})")), json!(false), "{slip}");
    }
    assert_eq!(violations(&mut browser), json!([]));
    browser.expect_quiet(&path);
}

#[test]
fn every_kind_of_result_has_its_page_and_none_scrolls_sideways() {
    let pages = pages();
    let Some(mut browser) = browser::start() else { return };
    for (kind, page) in &pages {
        keep(kind, &page.path);
        for width in [1280, 390, 320] {
            browser.looks(width, width == 390);
            browser.open(&page.path);
            let wide = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert_eq!(wide, json!(0), "{kind} at {width}");
            browser.expect_quiet(&page.path);
        }
        for slip in ["[object", "undefined", "NaN", "null", "Infinity"] {
            let found = browser.value(&format!("document.body.innerText.includes({slip:?})"));
            assert_eq!(found, json!(false), "{kind}: {slip}");
        }
        let shown = browser.value("[...document.querySelectorAll('main > section:not([hidden])')].map(({id}) => id)");
        let shown: Vec<String> = serde_json::from_value(shown).unwrap();
        let has = |id: &str| shown.iter().any(|shown| shown == id);
        assert!(
            ["verdict", "curves", "ledger", "stability", "tables", "repeat", "glossary"].iter().all(|id| has(id)),
            "{kind}: {shown:?}"
        );
        let figures = browser.value("document.querySelectorAll('#settings figure').length");
        assert_eq!(has("settings"), figures != json!(0), "{kind}");
        assert!(has("settings") || !["sweep", "tuned", "map"].contains(kind), "{kind}");
        assert_eq!(has("differences"), *kind != "failures", "{kind}: where pairs are missing, nothing is due");
        assert_eq!(has("prediction"), *kind == "registered", "{kind}");
        if *kind == "registered" {
            let warning = browser.text("#sentences .warning");
            assert!(warning.contains("when 20 of 20 runs had ended: metric.margin: 0.02, now 0.01"), "{warning}");
            assert!(browser.text("#prediction").contains("better = \"h8\"held"), "{}", browser.text("#prediction"));
        }
        assert_eq!(has("explorer") && has("cards"), ["pair", "sweep", "losses"].contains(kind), "{kind}");
        if *kind == "failures" {
            let stability = browser.text("#stability");
            for reason in ["diverged at step 37", "not run", "stopped after step 300", "damaged: "] {
                assert!(stability.contains(reason), "{stability}");
            }
        }
    }
}

#[test]
fn a_single_run_has_a_page_without_a_verdict() {
    let made = make("h1-vs-h8", "", SPLIT, |run| match run.pair {
        1 => Kind::Stopped { after: 300 },
        _ => Kind::Learns { at: 0.9 },
    });
    let runs = made.experiment.runs_in(&made.folder);
    let Some(mut browser) = browser::start() else { return };
    browser.looks(1280, false);
    for (pair, status) in [(0, "finished"), (1, "stopped after step 300")] {
        let run = runs.iter().find(|run| run.arm == "h8" && run.pair == pair).unwrap();
        let report = RunReport::read(&RunDirectory::at(run.directory.path())).unwrap();
        let mut heads = sample::heads(&self::report(&made).results, 1, |_| 8);
        let mut arm = heads.arms.remove(1);
        let analysis = arm.runs.remove(0).analysis.filter(|_| pair == 0);
        let analysis = analysis.map(|analysis| HeadAnalysis { measures: arm.measures, ..analysis });
        let path =
            report.write(run.directory.path(), analysis, Some(&sample::forward()).filter(|_| pair == 0)).unwrap();
        browser.open(&path);
        assert!(browser.text(".lead").contains(status), "{}", browser.text(".lead"));
        assert_eq!(browser.text("#verdict-title"), "Result");
        let last = report.test.map_or("–".into(), |score| format!("{:.4}", score.number(&ACCURACY)));
        assert!(pair == 1 || browser.text("#verdict").contains(&format!("accuracy {last}")));
        assert_eq!(
            browser.value("document.querySelectorAll('#cards .card').length"),
            json!(if pair == 0 { 8 } else { 0 })
        );
        assert_eq!(browser.value("document.querySelectorAll('#curves canvas').length"), json!(2));
        browser.expect_quiet(&path);
        assert_eq!(violations(&mut browser), json!([]), "{pair}");
    }
}

#[test]
fn figures_are_saved_as_svg_and_png() {
    let page = h1_vs_h8();
    let Some(mut browser) = open(&page.path) else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.download_to(folder.path());
    let count = browser.value("document.querySelectorAll('figure .save button').length").as_u64().unwrap();
    let figures = browser.value("document.querySelectorAll('figure').length").as_u64().unwrap();
    assert!(count == 2 * figures && figures >= 4, "{count} {figures}: curves, differences, two maps");
    for index in 0..count {
        browser.value(&format!("document.querySelectorAll('figure .save button')[{index}].id = 'save-{index}'"));
        browser.click(&format!("#save-{index}"));
        let until = Instant::now() + Duration::from_secs(180);
        let saved = || {
            fs::read_dir(folder.path()).unwrap().filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                name.to_string_lossy().ends_with(".svg") || name.to_string_lossy().ends_with(".png")
            })
        };
        while saved().count() as u64 <= index {
            assert!(Instant::now() < until, "figure {index} is not saved");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        if path.extension().unwrap() == "png" {
            assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 5_000, "{}", path.display());
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("var(") && !text.contains("NaN"), "{}", path.display());
        // Valid; that it is of something, the PNG of the same drawing shows.
        roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    browser.expect_quiet(&page.path);
}

#[test]
fn the_largest_experiment_stays_small() {
    let made = make("largest", "baseline = \"h1\"", GRID, |run| Kind::Learns {
        at: 0.5 + 0.03 * run.config.model.heads as f64,
    });
    let page = Page::with(made, 4, |_| 16);
    keep("largest", &page.path);
    let bytes = fs::metadata(&page.path).unwrap().len();
    println!("5 arms of 10 seeds, 4 layers of 16 heads: {:.2} MB", bytes as f64 / 1e6);
    assert!(bytes < 10_000_000);
    assert_eq!(page.made.experiment.arms.len(), 5);
    let small = h1_vs_h8();
    let bytes = fs::metadata(&small.path).unwrap().len();
    println!("2 arms of 10 seeds, 1 layer: {:.2} MB", bytes as f64 / 1e6);
    assert!(bytes < 3_000_000);
    let Some(mut browser) = open(&page.path) else { return };
    let paint = browser.value("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null");
    println!("first paint after {paint} ms, all there after {} ms", browser.value("Math.round(performance.now())"));
    // Two arms side by side, four layers of sixteen heads.
    assert_eq!(browser.value("document.querySelectorAll('#explorer .heads button').length"), json!(2 * 4 * 16));
    browser.expect_quiet(&page.path);
}
