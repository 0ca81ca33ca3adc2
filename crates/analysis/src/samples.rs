//! The fixed samples that heads are measured on: the first ones of the validation set.

use data::{Batch, Generator, IGNORE, Sample, Split, Task, metrics::Yardstick};
use runs::{
    Config,
    heads::{SHOWN_POSITIONS, ShownSample, ShownToken},
};

use crate::{
    limits::{MAP_ENTRIES, SAMPLES},
    maps::Readable,
    needs::Needs,
};

/// Samples on the host, and which connections their attentions may use.
pub struct Samples {
    /// On the host.
    pub batch: Batch,
    /// What their scores are relative to.
    pub yardstick: Yardstick,
    /// What their answers depend on.
    pub needs: Needs,
    /// Self-attention of the decoder, `[B][L][L]`.
    pub decoder: Readable,
    /// Self-attention of the encoder, `[B][Ls][Ls]`, and from the decoder to it, `[B][L][Ls]`; where there is one.
    pub encoder: Option<(Readable, Readable)>,
}

impl Samples {
    /// The first samples of the validation set of `config`'s task: 64, or fewer where the set is smaller or sequences are so
    /// long that maps would fill the memory. How many does not depend on the number of heads.
    pub fn new(config: &Config) -> Self {
        let task = &config.task.task;
        let length = task.source().map_or(0, |source| source.len).max(task.seq_len()) as u64;
        let fit = MAP_ENTRIES / (length * length * config.model.layers.max(1) as u64);
        let count = config.task.sets.validation_examples.min(SAMPLES).min(fit).max(1);
        let generator = Generator::new(task, Split::Validation, Split::Validation.data_seed(config.seed));
        let batch = generator.batch(&(0..count).collect::<Vec<_>>());
        let drawn: Vec<Sample> = (0..count).map(|index| generator.sample(index)).collect();
        let (b, padding) = (batch.batch, &batch.padding);
        let decoder = Readable::new(b, padding, padding, config.model.causal);
        let encoder = batch.source.as_ref().map(|source| {
            let own = Readable::new(b, &source.padding, &source.padding, false);
            (own, Readable::new(b, padding, &source.padding, false))
        });
        let yardstick = Yardstick::of(task, &config.task.sets, Split::Validation);
        Self { needs: Needs::of(task, &drawn), yardstick, batch, decoder, encoder }
    }

    /// The first `count` samples for people, cut to the positions that are shown.
    pub fn shown(&self, task: &Task, count: usize) -> Vec<ShownSample> {
        (0..count.min(self.batch.batch)).map(|b| shown(&self.batch, b, task, b as u64)).collect()
    }
}

/// Sample `b` of a batch for people, cut to the positions that are shown; `index` is its place in the validation set.
pub fn shown(batch: &Batch, b: usize, task: &Task, index: u64) -> ShownSample {
    let l = batch.len;
    let shown = |at: usize| {
        let token = batch.tokens.get(at).map(|&id| id as u32);
        let target = batch.targets[at];
        ShownToken {
            id: token.unwrap_or_default(),
            label: token.map_or_else(|| numbers_at(batch, task, at), |id| task.token_name(id)),
            padding: batch.padding[at],
            target: (target != IGNORE).then_some(target),
        }
    };
    let source = batch.source.iter().flat_map(|source| {
        let tokens = &source.tokens[b * source.len..(b + 1) * source.len];
        let padding = &source.padding[b * source.len..(b + 1) * source.len];
        let token = |(&id, &padding): (&i32, &bool)| ShownToken {
            id: id as u32,
            label: task.source_token_name(id as u32),
            padding,
            target: None,
        };
        tokens.iter().zip(padding).map(token).take(SHOWN_POSITIONS).collect::<Vec<_>>()
    });
    let tokens = (0..l.min(SHOWN_POSITIONS)).map(|position| shown(b * l + position)).collect();
    ShownSample { index, tokens, source: source.collect() }
}

/// The numbers read at a position of the batch, the first of them.
fn numbers_at(batch: &Batch, task: &Task, at: usize) -> String {
    const SHOWN: usize = 3;
    if task.readout() && at.is_multiple_of(batch.len) {
        return task.token_name(task.vocab() as u32);
    }
    let inputs = batch.numbers.as_ref().map_or(&[][..], |numbers| &numbers.inputs);
    let width = inputs.len() / (batch.batch * batch.len).max(1);
    let row = inputs.chunks(width.max(1)).nth(at).unwrap_or_default();
    let shown: Vec<String> = row.iter().take(SHOWN).map(|number| format!("{number:.2}")).collect();
    shown.join(" ") + if row.len() > SHOWN { " …" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(text: &str) -> (Config, Samples) {
        let config = Config::parse(text, "test.toml").unwrap();
        let samples = Samples::new(&config);
        (config, samples)
    }

    #[test]
    fn padding_is_known_on_both_sides() {
        let (config, samples) = samples("[task]\nkind = \"reverse\"\n[model]\narchitecture = \"encoder_decoder\"\n");
        let source = samples.batch.source.as_ref().unwrap();
        let (encoder, cross) = samples.encoder.as_ref().unwrap();
        for b in 0..64 {
            let real = (0..12).filter(|&j| !source.padding[b * 12 + j]).count();
            assert!((4..=12).contains(&real));
            // A start token and the target; the last real position is scored for the end.
            let decoder: Vec<bool> = (0..13).map(|position| position > real).collect();
            assert_eq!(samples.batch.padding[b * 13..(b + 1) * 13], decoder);
            for i in 0..13 {
                let expected = if i <= real { i + 1 } else { 0 };
                assert_eq!(samples.decoder.row(b, i).iter().filter(|&&r| r).count(), expected);
                let expected = if i <= real { real } else { 0 };
                assert_eq!(cross.row(b, i).iter().filter(|&&r| r).count(), expected);
            }
            let rows = (0..12).map(|i| encoder.row(b, i).iter().filter(|&&r| r).count());
            assert!(rows.eq((0..12).map(|i| if i < real { real } else { 0 })));
        }
        let shown = samples.shown(&config.task.task, 2);
        assert_eq!((shown.len(), shown[0].tokens.len(), shown[0].source.len()), (2, 13, 12));
        assert_eq!(shown[0].tokens[0].label, "start");
        let (token, source) = (&shown[0].tokens[1], &shown[0].source[0]);
        assert_eq!((&token.label, &source.label), (&token.id.to_string(), &source.id.to_string()));
        let scored = shown[1].tokens.iter().filter(|token| token.target.is_some()).count();
        assert_eq!(scored, shown[1].tokens.iter().filter(|token| !token.padding).count());
    }

    #[test]
    fn long_sequences_mean_fewer_samples_and_shown_ones_are_cut() {
        let (config, samples) =
            samples("[task]\nkind = \"registers\"\nseq_len = 512\n[train]\nbatch_size = 1\neval_batch = 1\n");
        assert_eq!(samples.batch.batch, 8);
        let shown = samples.shown(&config.task.task, 4);
        assert_eq!((shown.len(), shown[3].tokens.len()), (4, SHOWN_POSITIONS));
        let token = &shown[0].tokens[5];
        assert_eq!(token.label, format!("r{}={}", token.id / 4, token.id % 4));
        assert_eq!(token.target.is_some(), samples.batch.targets[5] != IGNORE);
    }

    #[test]
    fn tokens_are_called_as_their_task_calls_them() {
        let (config, samples) = samples("[task]\nkind = \"mqar\"\n");
        let tokens = &samples.shown(&config.task.task, 1)[0].tokens;
        assert!(tokens[0].label.starts_with("key ") && tokens[1].label.starts_with("value "), "{:?}", &tokens[..2]);
    }
}
