//! The checks of the functions that are attached.
//!
//! | file | holds |
//! |---|---|
//! | `all` | of all of them together |
//! | `error_types` | what their runtimes write as an error's type |
//! | `function` | of a function, however it is invoked |
//! | `destination` | where its failures go, by alias and version |
//! | `permission` | what it and the handler may do, by alias and version |

pub(super) mod all;
pub(super) mod destination;
mod error_types;
pub(super) mod function;
pub(super) mod permission;

use crate::doctor::diagnosis::Judged;
use crate::doctor::facts::Facts;
use crate::doctor::facts::functions::{Entrance, Function};

pub(super) type OfFunction = fn(&Facts, &Function) -> Judged;
pub(super) type OfEntrance = fn(&Facts, &Function, &Entrance) -> Judged;
