//! The `comeback` program. Its code is in the library.

use std::process::ExitCode;

/// A faster allocator for simulations. A million waiting messages take a gigabyte of short strings, and each string is
/// replaced about fourteen times. With the system's allocator on Linux, a simulation of this size takes 1.3 times as
/// long. The feature `no_thp` turns huge pages off: they would double the memory of a small simulation, and save a
/// fiftieth of its time.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    comeback::main()
}
