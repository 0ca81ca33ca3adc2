//! One model for each mistake. Exactly the check meant for it must fail, and those whose failure follows from it.

use burn::tensor::Device;
use trainer::doctor::{CHECKS, Checked, Examination, Finding, Subject};

use super::reference::{Fault, Reference};
use super::{difference, subject_config};

/// Every finding on the reference with `fault`.
fn examined(fault: Fault, device: &Device, flex: Result<Device, &'static str>) -> Vec<Finding> {
    let program = Reference(fault);
    let subject = Subject::new(&subject_config(), &program, device).unwrap();
    let examination = Examination::new(&subject, &subject, flex).unwrap();
    CHECKS.iter().filter_map(|check| check.of_model(&examination)).collect()
}

fn failed(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().filter(|finding| finding.outcome.is_failed()).map(|finding| finding.check).collect()
}

/// Panics unless exactly `meant` and `follow` fail, and the finding of `meant` names the mistake by `words`.
#[track_caller]
fn assert_caught(fault: Fault, meant: &str, follow: &[&str], words: &str) {
    let findings = examined(fault, &Device::flex(), Err("computes on flex"));
    let text: Vec<String> =
        findings.iter().filter(|finding| finding.outcome.is_failed()).map(Finding::to_text).collect();
    let text = text.join("\n");
    let mut expected: Vec<&str> = follow.iter().copied().chain([meant]).collect();
    expected.sort_by_key(|name| CHECKS.iter().position(|check| check.name == *name));
    assert_eq!(failed(&findings), expected, "{fault:?}\n{text}");
    let meant = findings.iter().find(|finding| finding.check == meant).unwrap();
    let Checked::Failed { seen, cause, fix } = &meant.outcome else { panic!("{meant:?}") };
    let said = format!("{seen} {cause} {fix}");
    assert!(said.contains(words), "{fault:?} is not named by {words:?}: {said}");
}

macro_rules! faults {
    ($($name:ident: $fault:ident => $meant:literal $words:literal $(and $($follow:literal),+)?;)+) => {
        $(#[test]
        fn $name() {
            assert_caught(Fault::$fault, $meant, &[$($($follow),+)?], $words);
        })+
    };
}

// fault => the check meant for it, words that name the cause, and the checks whose failure follows from it.
faults! {
    tokens_shifted: TokensShifted => "inputs" "shifted" and "targets";
    targets_shifted: TargetsShifted => "targets" "one place off";
    tokens_clipped: TokensClipped => "embedding" "clipped";
    positions_from_one: PositionsFromOne => "embedding" "positions shifted";
    heads_not_swapped: HeadsNotSwapped => "shapes" "axes swapped" and "empty row";
    // Positions and heads are mixed up, so that each reads the other.
    split_without_swap: SplitWithoutSwap => "split" "straight to" and "future", "padding", "head order", "decoding";
    no_scale: NoScale => "scores" "is missing";
    scaled_by_d_model: ScaledByDModel => "scores" "all heads together";
    groups_interleaved: GroupsInterleaved => "scores" "kv_heads" and "context", "head order";
    mask_inverted: MaskInverted => "mask" "inverted" and "empty row", "future", "padding", "decoding";
    // The first position reads nothing, so its row does not sum to 1.
    mask_too_narrow: MaskTooNarrow => "mask" "may not read itself" and "rows";
    mask_too_wide: MaskTooWide => "mask" "one place off" and "future", "decoding";
    mask_after_softmax: MaskAfterSoftmax => "rows" "after the softmax" and "future", "padding", "decoding";
    mask_of_minus_10000: MaskOfMinus10000 => "mask" "large negative number";
    padding_ignored: PaddingIgnored => "mask" "padding" and "empty row", "padding";
    softmax_over_queries: SoftmaxOverQueries => "rows" "over the queries" and "future", "padding", "decoding";
    maps_after_dropout: MapsAfterDropout => "rows" "after dropout";
    nan_where_nothing_is_read: NanWhereNothingIsRead => "empty row" "0/0";
    merge_reversed: MergeReversed => "merge" "reverse order" and "head order";
    merge_without_swap: MergeWithoutSwap => "merge" "straight from" and "future", "padding", "head order", "decoding";
    no_final_norm: NoFinalNorm => "stream" "logits" and "reach";
    convolution_ahead: ConvolutionAhead => "future" "convolution" and "padding", "decoding";
    convolution_behind: ConvolutionBehind => "padding" "convolution";
    batch_statistic: BatchStatistic => "samples" "statistic over the batch" and "future", "padding", "accumulation", "decoding";
    bias_unused: BiasUnused => "reach" "not used";
    maps_detached: MapsDetached => "reach" "detach";
    branch_detached: BranchDetached => "gradients" "detached";
    accumulation_of_means: AccumulationOfMeans => "accumulation" "averaged by itself";
    accumulation_of_sums: AccumulationOfSums => "accumulation" "not divided";
    optimiser_frozen: OptimiserFrozen => "overfit" "do not lower the loss";
    optimiser_ascends: OptimiserAscends => "overfit" "do not lower the loss";
    dropout_in_evaluation: DropoutInEvaluation => "dropout" "stays on in evaluation";
    dropout_never: DropoutNever => "dropout" "never applied";
    cache_forgets: CacheForgets => "decoding" "old keys";
}

/// Without a mistake nothing fails, and the reference is the real model: the same nodes, logits and gradients.
#[test]
fn without_a_mistake_the_reference_is_the_model() {
    let findings = examined(Fault::None, &Device::flex(), Err("computes on flex"));
    assert_eq!(failed(&findings), Vec::<&str>::new());
    difference::assert_same(&Reference(Fault::None));
}

/// A backend that computes something else is told by comparison with flex.
#[test]
#[allow(deprecated)] // Device::ndarray: a second opinion as long as Burn has it
fn other_backend() {
    let findings = examined(Fault::OtherBackend, &Device::ndarray(), Ok(Device::flex()));
    assert_eq!(failed(&findings), ["backend"]);
    assert_eq!(failed(&examined(Fault::None, &Device::ndarray(), Ok(Device::flex()))), Vec::<&str>::new());
}

/// A program that scales scores whatever the config says.
#[test]
fn scaled_though_configured_otherwise() {
    let program = Reference(Fault::None);
    let mut config = subject_config();
    config.model.scale = architecture::ScoreScale::None;
    let subject = Subject::new(&config, &program, &Device::flex()).unwrap();
    let examination = Examination::new(&subject, &subject, Err("computes on flex")).unwrap();
    let findings: Vec<Finding> = CHECKS.iter().filter_map(|check| check.of_model(&examination)).collect();
    assert_eq!(failed(&findings), ["scores"]);
    let found = findings.iter().find(|finding| finding.outcome.is_failed()).unwrap().to_text();
    assert!(found.contains("scale = \"none\""), "{found}");
}

/// Initial weights that are too wide for the output layer.
#[test]
fn logits_too_large_at_the_start() {
    let program = Reference(Fault::None);
    let subject = Subject::new(&subject_config(), &program, &Device::flex()).unwrap();
    let mut weights = subject.weights();
    weights.get_mut("logits.weight").unwrap().values.iter_mut().for_each(|value| *value *= 10.0);
    let wide = subject.with_weights(&weights).unwrap();
    let examination = Examination::new(&wide, &wide, Err("computes on flex")).unwrap();
    let findings: Vec<Finding> = CHECKS.iter().filter_map(|check| check.of_model(&examination)).collect();
    assert_eq!(failed(&findings), ["untrained loss"]);
}

/// The whole of what is said about one broken model, as it stands in docs/doctor.md.
#[test]
fn what_a_reader_is_told() {
    let findings = examined(Fault::MaskAfterSoftmax, &Device::flex(), Err("computes on flex"));
    let told: Vec<String> =
        findings.iter().filter(|finding| finding.outcome.is_failed()).map(Finding::to_text).collect();
    insta::assert_snapshot!("doctor_mask_after_softmax", told.join("\n"));
}
