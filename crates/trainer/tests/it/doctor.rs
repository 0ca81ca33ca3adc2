//! The doctor: each mistake is caught by the check meant for it, and nothing healthy is called ill.

mod command;
mod difference;
mod faults;
mod reference;

use burn::tensor::Device;
use runs::Config;
use trainer::doctor::{CHECKS, Examination, Finding, Headcount, Subject};

use crate::support::*;

/// A model with all that a mistake can hide in: two layers, groups of heads, learned positions.
fn subject_config() -> Config {
    let text = r#"
        [task]
        kind = "registers"
        registers = 2
        values = 3
        seq_len = 12
        [model]
        d_model = 24
        layers = 2
        heads = 4
        kv_heads = 2
    "#;
    Config::parse(text, "subject.toml").unwrap()
}

/// What fails on the real program, as text.
fn complaints(config: &Config, device: &Device, flex: Result<Device, &'static str>) -> Vec<String> {
    let subject = Subject::new(config, &Headcount, device).unwrap();
    let examination = Examination::new(&subject, &subject, flex).unwrap();
    let findings = CHECKS.iter().filter_map(|check| check.of_model(&examination));
    findings.filter(|finding| finding.outcome.is_failed()).map(|finding: Finding| finding.to_text()).collect()
}

#[test]
fn every_config_of_the_repository_is_healthy() {
    let mut files: Vec<_> = std::fs::read_dir(configs()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    for path in files {
        let config = Config::load(&path, &[]).unwrap();
        let found = complaints(&config, &Device::flex(), Err("computes on flex"));
        assert_eq!(found, Vec::<String>::new(), "{}", path.display());
    }
}

/// What no config of the repository has: more heads than fit d_model, short samples, one layer less.
#[test]
fn unusual_models_are_healthy() {
    for overrides in [
        vec!["model.layers=0"],
        vec!["model.d_head=8", "model.kv_heads=1", "model.positions=rope", "model.key_bias=true"],
        vec!["task.seq_len=2", "model.layers=2"],
        vec!["task.registers=1", "task.seq_len=1"],
        vec!["model.causal=false", "model.positions=none"],
        vec!["model.scale=none", "model.heads=1"],
        vec!["model.bias=false", "model.norm=none", "model.residual=false", "model.mlp=false"],
        vec!["model.embedding_dropout=0.1", "model.attention_dropout=0.2", "model.residual_dropout=0.3"],
    ] {
        let config = small(&overrides);
        let found = complaints(&config, &Device::flex(), Err("computes on flex"));
        assert_eq!(found, Vec::<String>::new(), "{overrides:?}");
    }
}

/// What was called a wrong gradient: a loss that bends within the step by which it is measured. Streams that are nearly
/// constant before a layer norm bend so, and norms of two numbers.
#[test]
fn a_loss_that_bends_is_no_wrong_gradient() {
    let weak = ["model.init=gpt2", "model.residual=false", "model.norm=pre"];
    for overrides in [
        [&weak[..], &["model.merge=mean"]].concat(),
        [&weak[..], &["model.merge=concat"]].concat(),
        [&weak[..], &["model.merge=mean", "model.kv_heads=1", "model.bias=false"]].concat(),
        vec!["model.d_model=2", "model.heads=1"],
        vec!["model.d_model=2", "model.heads=1", "model.layers=3"],
        vec!["model.d_model=2", "model.heads=2", "model.init=gpt2", "model.residual=false"],
        vec!["model.d_model=3", "model.heads=1"],
        vec!["model.d_model=1", "model.heads=1"],
    ] {
        let found = complaints(&small(&overrides), &Device::flex(), Err("computes on flex"));
        assert_eq!(found, Vec::<String>::new(), "{overrides:?}");
    }
}

/// What was blamed on the optimiser or on an unused parameter: a config without residual connections, whose signal fades.
#[test]
fn what_fades_without_residuals_is_the_configs_doing() {
    let weak = ["model.init=gpt2", "model.residual=false", "model.layers=4"];
    for norm in ["model.norm=pre", "model.norm=none"] {
        let found = complaints(&small(&[&weak[..], &[norm]].concat()), &Device::flex(), Err("computes on flex"));
        assert!(found.iter().any(|finding| finding.contains("overfit")), "{norm}: {found:?}");
        assert!(found.iter().all(|finding| finding.contains("without residual connections")), "{norm}: {found:?}");
    }
}

#[test]
#[allow(deprecated)] // Device::ndarray: a second opinion as long as Burn has it
fn ndarray_is_healthy() {
    assert_eq!(complaints(&small(&[]), &Device::ndarray(), Ok(Device::flex())), Vec::<String>::new());
}

#[test]
fn wgpu_is_healthy() {
    if skips_wgpu() {
        return;
    }
    let device = trainer::machine::backend::open(runs::Backend::Wgpu).unwrap();
    // Wide and easy, so that few updates learn a batch by heart: in software each takes a tenth of a second.
    let config = small(&["model.d_model=48", "task.registers=1", "task.seq_len=8"]);
    assert_eq!(complaints(&config, &device, Ok(Device::flex())), Vec::<String>::new());
}
