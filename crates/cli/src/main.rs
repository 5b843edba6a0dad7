//! The `comeback` program.

use std::process::ExitCode;

/// A faster allocator than the system's. Without it, on Linux, a simulation of a million waiting messages takes 1.3
/// times as long. The feature `no_thp` turns off huge pages, which would double a small simulation's memory.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    comeback::main()
}
