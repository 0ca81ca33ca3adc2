//! What a model says, and the pass that leads to it.

use super::*;

#[test]
fn a_forward_pass_is_followed_by_mouse_and_by_keyboard() {
    let made = make("h1-vs-h8", "", SPLIT, |_| Kind::Learns { at: 0.9 });
    let run = &made.experiment.runs_in(&made.folder)[0];
    let report = RunReport::read(&RunDirectory::at(run.directory.path())).unwrap();
    let pass = sample::forward();
    let path = report.write(run.directory.path(), None, Some(&pass)).unwrap();
    keep("forward", &path);
    let Some(mut browser) = browser::start() else { return };
    let attention = &pass.passes[0].attentions[0];
    let number = |tensor: &runs::forward::Numbers, at: usize| terminal::traced_values(tensor)[at];
    for width in [1400, 768, 390] {
        browser.looks(width, width == 768);
        browser.open(&path);
        // A late position where something is asked, and the key that head 0 reads most: the numbers of the model.
        let weights: Vec<f32> = (0..8).map(|key| number(&attention.maps, 6 * 8 + key)).collect();
        let key = (0..8).max_by(|&a, &b| weights[a].total_cmp(&weights[b])).unwrap();
        assert!(browser.text("output[for=forward-query]").starts_with("6 (r"));
        assert_eq!(browser.text("#forward .weight"), format!("{:.4}", weights[key]));
        let score = format!("{:.3}", number(&attention.scores, 6 * 8 + key)).replace('-', "−");
        assert_eq!(browser.text("#forward .score"), score);
        let sums = browser.value("[...document.querySelectorAll('#forward figcaption')].map((sum) => sum.textContent)");
        assert_eq!(sums, json!(["sum 1.0000", "sum 1.0000"]));
        // Another key, another query, another head.
        browser.press("#forward-key", &["Home"]);
        assert_eq!(browser.text("#forward .weight"), format!("{:.4}", weights[0]));
        browser.press("#forward-query", &["ArrowLeft"]);
        assert!(browser.text("output[for=forward-query]").starts_with("5 (r"));
        browser.click("#forward .answers button:nth-child(4)");
        assert!(browser.text("output[for=forward-query]").starts_with("3 (r"));
        browser.press("#forward .steps li:nth-child(5) .each-head figure:nth-child(2) button", &["Enter"]);
        assert!(browser.text("#forward .steps li:nth-child(5)").contains("Head 1 gives key"));
        // Without its mask.
        assert!(
            browser.text("#forward .steps li:nth-child(4)").contains("keeps it from 4 keys: their scores become −∞")
        );
        browser.press("input[name=mask-causal]", &[" "]);
        let leak = browser.text("#forward .leak");
        let open = terminal::traced_values(&pass.passes[1].attentions[0].maps);
        let leaked: f32 =
            (0..2).map(|head| (4..8).map(|key| open[(head * 8 + 3) * 8 + key]).sum::<f32>()).sum::<f32>() / 2.0;
        assert!(leak.contains(&format!("put {leaked:.3} of their weight")), "{leak} {leaked}");
        assert!(leak.contains("1 of 2 answers are right, 2 with all masks"), "{leak}");
        browser.press("#forward-query", &["End"]);
        assert!(browser.text("#forward .steps li:nth-child(8)").contains("wrong: 7 is right"));
        browser.click("input[name=mask-causal]");
        assert_eq!(browser.value("document.querySelector('#forward .leak')"), Value::Null);
        let wide = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(wide, json!(0), "{width}");
        browser.expect_quiet(&path);
        assert_eq!(violations(&mut browser), json!([]), "{width}");
    }
}

#[test]
fn answers_are_shown_right_and_wrong() {
    let page = h1_vs_h8();
    let Some(mut browser) = open(&page.path) else { return };
    for width in [1400, 768, 390] {
        browser.looks(width, false);
        browser.open(&page.path);
        let side = "#explorer .side:nth-child(2)";
        // The sample with the most errors first, and a cell where something is asked.
        assert!(
            browser.text("#explorer select option").contains("8 heads wrong at 7 of 26"),
            "{}",
            browser.text("#explorer select option")
        );
        assert!(
            browser.text("#cell-1").contains("Position 31 (r")
                && browser.text("#cell-1").contains(", where the model says")
        );
        let count = |browser: &mut Browser, kind: &str| {
            browser.value(&format!("document.querySelectorAll('{side} .answer.{kind}').length"))
        };
        assert_eq!(
            (count(&mut browser, "wrong"), count(&mut browser, "right"), count(&mut browser, "unasked")),
            (json!(7), json!(19), json!(6))
        );
        browser.press("#explorer select", &["ArrowDown"]);
        assert_eq!(count(&mut browser, "wrong"), json!(4));
        // An answer leads to what its position reads, in every head.
        browser.click(&format!("{side} .answers button:nth-child(11)"));
        assert!(browser.text("#cell-1").contains("Position 10 (r"), "{}", browser.text("#cell-1"));
        assert_eq!(browser.value(&format!("document.querySelectorAll('{side} .every .row').length")), json!(8));
        browser.press(&format!("{side} .answers button:nth-child(7)"), &["Enter"]);
        assert!(browser.text("#cell-1").contains("Position 6 (r") && browser.text("#cell-1").contains("wrong: "));
        // All heads large, beside each other.
        let size = "document.querySelectorAll('#explorer .side')[1].querySelector('.heads canvas').clientWidth";
        let before = browser.value(size).as_f64().unwrap();
        browser.press("input[name=size][value=one]", &["ArrowRight"]);
        assert!(browser.value(size).as_f64().unwrap() > 1.8 * before, "{width}");
        browser.expect_quiet(&page.path);
    }
}
