//! The machine that a run computes on: what it has, what it lends, and when it asks to stop.

pub mod allocator;
pub mod backend;
pub(crate) mod control_groups;
pub mod exit;
pub mod facts;
pub mod memory;
pub mod stop;
