//! Whether a program computes what this one does.

use burn::tensor::Device;
use model::Dropout;
use trainer::doctor::{Headcount, Inputs, Pass, Program, Subject};

use super::subject_config;

fn largest_difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn assert_close(left: &Pass, right: &Pass) {
    for node in &right.nodes {
        let found = left.nodes.iter().find(|found| found.name == node.name);
        let (found, expected) = (found.unwrap_or_else(|| panic!("{}", node.name)).to_host(), node.to_host());
        assert_eq!(found.shape, expected.shape, "{}", node.name);
        // Keys at padding are cleared in the real model, and need not be.
        if !["key_input", "key", "value", "key_heads", "value_heads", "scores"]
            .iter()
            .any(|name| node.name.ends_with(name))
        {
            let off = largest_difference(&found.values, &expected.values);
            assert!(off < 1e-5, "{}: {off}", node.name);
        }
    }
    assert!(largest_difference(&left.logits.values, &right.logits.values) < 1e-5);
}

/// Panics unless `program` gives the nodes, logits and gradients of the real one, in evaluation and in training.
pub fn assert_same(program: &dyn Program) {
    let config = subject_config();
    let real = Subject::new(&config, &Headcount, &Device::flex()).unwrap();
    let other = Subject::new(&config, program, &Device::flex()).unwrap();
    let batch = real.batch(&[0, 1, 2]);
    let padding = Some((0..batch.tokens.len()).map(|at| at % 5 == 3).collect());
    for inputs in [Inputs::new(batch.clone()), Inputs { batch, padding }] {
        assert_close(&other.trace(&inputs).unwrap(), &real.trace(&inputs).unwrap());
        let [found, expected] = [&other, &real].map(|subject| subject.gradient(&inputs).unwrap().concat());
        assert!(largest_difference(&found, &expected) < 1e-5);
        let dropout = Dropout { seed: 3, step: 5, micro_batch: 0 };
        let [found, expected] = [&other, &real].map(|subject| {
            let dropped = subject.with_model(|model| {
                model.embedding_dropout = 0.1;
                model.attention_dropout = 0.2;
                model.residual_dropout = 0.3;
            });
            dropped.unwrap().train(&inputs, dropout).unwrap()
        });
        assert_close(&found, &expected);
    }
}
