//! How much is shown.

/// Most points of a training curve.
pub const CURVE_POINTS: usize = 160;
/// Most points of one run's validation curve; a longer one keeps every k-th and the last.
pub const VALIDATED_POINTS: usize = 200;
/// Most runs that did not finish, in a terminal.
pub const PROBLEMS: usize = 8;
