//! Many runs at once: each is a process of its own with its share of threads.
//!
//! Small matrices do not fill a processor's cores, so independent runs side by side use it better than one run on all
//! cores. A run's result depends on its config alone, never on how many others ran beside it.
//!
//! [`pool`] gives [`job`]s to processes and watches them; [`reporter`] is the other end, within such a process.

pub mod job;
pub mod pool;
mod process;
pub mod reporter;
