//! The compiled command: what it prints and writes, and how it ends.

mod event_files;
mod json;
mod pages;
mod plan;
mod report;
mod schedule;
mod simulate;
mod subcommands;
mod support;
