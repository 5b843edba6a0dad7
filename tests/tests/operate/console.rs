//! Tests of `comeback ui` in a real browser, on a deployed stack or on the demonstration.

mod browser;
pub(crate) mod dead_letters;
pub(crate) mod hostile;
pub(crate) mod incident;
pub(crate) mod lab;
pub(crate) mod looks;
pub(crate) mod strangers;
