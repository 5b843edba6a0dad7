//! The `comeback` program. Its code is in the library.

use std::process::ExitCode;

/// A faster allocator for simulations. A simulation with a million waiting messages holds a gigabyte of short strings,
/// and replaces each string about fourteen times. With the system's allocator on Linux, the simulation takes 1.3 times
/// as long. The feature `no_thp` turns huge pages off. They would double the memory of a small simulation, and save
/// only about 2 % of its time.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    comeback::main()
}
