//! Tests of `comeback ui` in a real browser, with a deployed stack.

mod browser;
pub(crate) mod dead_letters;
pub(crate) mod hostile;
pub(crate) mod incident;
pub(crate) mod lab;
pub(crate) mod looks;
pub(crate) mod strangers;
