//! How much is looked at, and how much of it is kept.

/// Most samples that heads are measured on.
pub const SAMPLES: u64 = 64;
/// Most map entries of a head in all layers and samples: they are on the host, and on the device, all at once.
pub const MAP_ENTRIES: u64 = 1 << 21;
/// Most characters that the maps of one file may take.
pub const MAP_CHARACTERS: usize = 512 << 10;
/// Heads of which the removal is tried anew each time that one is removed: those that cost least when they were last tried.
pub const TRIED: usize = 16;
/// FLOPs of the matrix products for which samples are taken to choose the order in which heads are removed, and again to read what
/// is left: a few seconds on two cores.
pub const PRUNING_FLOPS: u64 = 300_000_000_000;
/// Least and most validation samples by which heads are removed; of the most, their means are taken.
pub const PRUNING_SAMPLES: (u64, u64) = (8, SAMPLES);
/// Least and most test samples on which what is left is read.
pub const PRUNING_TEST_SAMPLES: (u64, u64) = (32, 512);
/// Most numbers of one forward pass that are shown step by step.
pub const TRACED_NUMBERS: usize = 120_000;
/// Most characters that the maps of an experiment's other runs may take, which are shown at their last step.
pub const OTHER_MAP_CHARACTERS: usize = 1 << 20;
/// Most samples whose maps are kept.
pub const SHOWN_SAMPLES: usize = 4;
