//! The trainer as its users meet it: the program with its files and exit codes, and the loop below it.

#![allow(clippy::disallowed_methods)] // tests write what no command may

mod arms;
mod backends;
mod bench;
mod bytes;
mod command_line;
mod compare;
mod dashboard;
mod doctor;
mod durable;
mod generate;
mod heads;
mod import;
mod interrupt;
#[cfg(unix)]
mod lost_output;
mod machine;
mod malformed;
mod optimiser;
mod outcomes;
#[cfg(unix)]
mod outputs;
mod own_data;
mod report;
mod reports;
mod sequences;
#[cfg(unix)]
mod sharing;
#[cfg(unix)]
mod signals;
mod support;
mod tensorboard;
