//! `comeback ui` in a real browser, against the stack as it is deployed.

mod browser;
pub(crate) mod hostile;
pub(crate) mod incident;
pub(crate) mod lab;
pub(crate) mod letters;
pub(crate) mod looks;
pub(crate) mod strangers;
