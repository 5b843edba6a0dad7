//! The compiled command: its output, its files and its exit codes.

mod event_files;
mod json;
mod pages;
mod plan;
mod report;
mod schedule;
mod simulate;
mod subcommands;
mod support;
