//! A release as its users meet it: what `make dist` left in `dist/`, with no Rust on the machine. For `make check-dist`.
//!
//! | file | holds |
//! |---|---|
//! | `outside` | an empty folder, a shell without Rust, and a server that has the release |
//! | `sam` | the template by the SAM CLI and by the AWS CLI, until a Python function succeeds |
//! | `command` | the `comeback` command by its installer |
//! | `emulator` | the retry handler under AWS's Runtime Interface Emulator |

mod command;
mod emulator;
mod outside;
mod sam;
