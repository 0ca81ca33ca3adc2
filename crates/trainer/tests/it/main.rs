//! The trainer as its users meet it: the program with its files and exit codes, and the loop below it.

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
mod interrupt;
mod malformed;
mod optimiser;
mod outcomes;
mod report;
mod reports;
mod sequences;
mod support;
