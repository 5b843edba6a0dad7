//! Tests for the compiled `comeback` command: what it prints, the files it writes, and its exit codes.

mod event_files;
mod json;
mod pages;
mod plan;
mod report;
mod schedule;
mod simulate;
mod subcommands;
mod support;
