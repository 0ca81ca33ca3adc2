//! Every kernel against the plain composition, in f32 and in f64.
#![cfg(feature = "flex")]

mod attention;
mod compare;
mod levels;
mod others;
mod threads;
