//! How much is shown.

/// Most points of a training curve.
pub const CURVE_POINTS: usize = 160;
/// Most points of one run's validation curve; a longer one keeps every k-th and the last.
pub const VALIDATED_POINTS: usize = 200;
/// Most runs that did not finish, in a terminal.
pub const PROBLEMS: usize = 8;

/// Of a table of others: its size, and what is in it.
pub const TABLE_BYTES: usize = 32 << 20;
pub const TABLE_ROWS: usize = 1_000_000;
pub const TABLE_COLUMNS: usize = 64;
pub const TABLE_PAIRS: usize = 10_000;
/// As many as a page can tell apart.
pub const TABLE_ARMS: usize = 64;
/// Characters of a name.
pub const TABLE_NAME: usize = 100;
