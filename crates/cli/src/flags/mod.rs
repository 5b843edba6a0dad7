//! Flags that several subcommands take.
//!
//! | file | holds |
//! |---|---|
//! | `policy`, `policy_changes` | the policy's flags, read in the retry handler's own words, and changes to them |
//! | `faults` | a simulation's faults |
//! | `at` | `--at`: a moment |
//! | `suffix` | paths that end as what is written to them does |
//! | `misplaced` | a flag or a file that another subcommand takes |

pub(crate) mod at;
pub(crate) mod faults;
pub(crate) mod misplaced;
pub(crate) mod policy;
pub(crate) mod policy_changes;
pub(crate) mod suffix;
