//! Keys and values of the positions that a decoder has read, so that the next token asks one query a head instead of reading
//! everything again (Shazeer 2019, section 2.4).

use burn::tensor::{Device, Tensor, s};
use kernels::PreparedMask;

use crate::call::CallError;

/// What [`Decoder::extend`](crate::Decoder::extend) remembers: for each layer the keys, after rotation, and the values of
/// every position so far, `[B, G, capacity, K]` each, and of an encoder's output, `[B, G, Ls, K]` each.
///
/// Made by [`Decoder::cache`](crate::Decoder::cache), for B samples that are read in step. Samples of unequal length begin
/// with padding. No gradient flows through what is remembered.
#[derive(Clone, Debug)]
pub struct Cache {
    pub(crate) layers: Vec<Past>,
    pub(crate) memory: Option<Memory>,
    /// Padding that each sample begins with, `[B]`.
    leading: Vec<usize>,
    held: usize,
    capacity: usize,
}

impl Cache {
    pub(crate) fn new(layers: Vec<Past>, memory: Option<Memory>, batch: usize, capacity: usize) -> Self {
        Self { layers, memory, leading: vec![0; batch], held: 0, capacity }
    }

    /// B, the number of samples.
    pub fn batch(&self) -> usize {
        self.leading.len()
    }

    /// Positions read so far, padding included.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The most positions that there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets every position, but not what an encoder has read.
    pub fn clear(&mut self) {
        self.held = 0;
        self.leading.fill(0);
        self.layers.iter_mut().for_each(|layer| layer.held = 0);
    }

    /// Bytes of the tensors held, those of an encoder's output included; see [`architecture::cost::cache_bytes`].
    pub fn bytes(&self) -> u64 {
        let own = self.layers.iter().map(|layer| layer.room.bytes());
        let of_source = self.memory.iter().flat_map(|memory| &memory.layers).map(KeyValues::bytes);
        own.chain(of_source).sum()
    }

    /// The padding that each sample begins with once L more tokens are read, `[B]`. `padding` is that of the new tokens,
    /// `[B, L]`, row-major.
    ///
    /// # Errors
    /// Padding after a sample's first real token, another shape, no room.
    pub(crate) fn leading_after(&self, length: usize, padding: Option<&[bool]>) -> Result<Vec<usize>, CallError> {
        if self.held + length > self.capacity {
            return Err(CallError::CacheFull { held: self.held, more: length, capacity: self.capacity });
        }
        let Some(padding) = padding else { return Ok(self.leading.clone()) };
        let mut all = Vec::with_capacity(self.batch());
        for (sample, (row, &before)) in padding.chunks(length.max(1)).zip(&self.leading).enumerate() {
            let here = row.iter().take_while(|&&is_padding| is_padding).count();
            if row[here..].contains(&true) || here > 0 && before < self.held {
                return Err(CallError::CachePadding { sample });
            }
            all.push(before + here);
        }
        Ok(all)
    }

    /// Notes that L more positions were read.
    pub(crate) fn advance(&mut self, length: usize, leading: Vec<usize>) {
        self.held += length;
        self.leading = leading;
    }
}

/// What the decoder's blocks read of an encoder's output.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// One for each block.
    pub layers: Vec<KeyValues>,
    /// Padding of the source, for scores `[B, H, L, Ls]`.
    pub mask: Option<PreparedMask>,
}

/// Keys and values as queries read them: `[B, G, Lk, K]` each, one for each key/value head, keys already rotated.
#[derive(Clone, Debug)]
pub(crate) struct KeyValues {
    pub keys: Tensor<4>,
    pub values: Tensor<4>,
}

impl KeyValues {
    fn bytes(&self) -> u64 {
        let of = |tensor: &Tensor<4>| (tensor.shape().num_elements() * tensor.dtype().size()) as u64;
        of(&self.keys) + of(&self.values)
    }
}

/// The keys and values of one layer's self-attention, in tensors with room for more.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// `[B, G, capacity, K]` each; what stands from `held` on is never read.
    room: KeyValues,
    held: usize,
}

impl Past {
    /// Nothing yet. `shape` is `[B, G, capacity, K]`.
    pub fn new(shape: [usize; 4], device: &Device) -> Self {
        Self { room: KeyValues { keys: Tensor::zeros(shape, device), values: Tensor::zeros(shape, device) }, held: 0 }
    }

    /// Adds those of L more positions and gives all.
    pub fn add(&mut self, new: KeyValues) -> KeyValues {
        let (from, to) = (self.held, self.held + new.keys.dims()[2]);
        self.held = to;
        let write = |room: &mut Tensor<4>, new: Tensor<4>| {
            // Nobody else holds the tensor here, so that it can be written in place, and reading it is a view.
            room.inplace(|room| room.slice_assign(s![.., .., from..to, ..], new.detach()));
            room.clone().narrow(2, 0, to)
        };
        KeyValues { keys: write(&mut self.room.keys, new.keys), values: write(&mut self.room.values, new.values) }
    }
}
