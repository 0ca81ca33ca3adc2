//! What machines without AVX-512, or without AVX2, run: the other tests once more with narrower vectors.

use std::process::Command;

fn all_tests_pass_with(level: &str) {
    if std::env::var("HEADCOUNT_SIMD").is_ok() {
        return; // this is that run
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["attention::", "others::", "--test-threads=2"])
        .env("HEADCOUNT_SIMD", level)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "with {level} vectors:\n{text}");
    assert!(text.contains("attention_is_the_plain_one") && text.contains(" passed"), "{text}");
}

#[test]
fn without_avx512() {
    all_tests_pass_with("avx2");
}

#[test]
fn without_avx2() {
    all_tests_pass_with("portable");
}
