//! How much is looked at, and how much of it is kept.

/// Most samples that heads are measured on.
pub const SAMPLES: u64 = 64;
/// Most map entries of a head in all layers and samples: they are on the host, and on the device, all at once.
pub const MAP_ENTRIES: u64 = 1 << 21;
/// Most characters that the maps of one file may take.
pub const MAP_CHARACTERS: usize = 512 << 10;
/// Most samples whose maps are kept.
pub const SHOWN_SAMPLES: usize = 4;
