//! Rehearsals of [Comeback](https://github.com/comeback-retries/comeback)'s retries, as values and pictures.
//!
//! A rehearsal is a *simulated day*, the *schedule* of a policy, or a *plan* from a goal to a policy.
//! `comeback-timelapse` runs a rehearsal. This crate parses a rehearsal's flags, describes its figures in words, and
//! draws the figures. The `comeback` command and its console show the same words and pictures.
//!
//! | file | holds |
//! |---|---|
//! | [`simulate`] | the arguments of a run, its figures, and the page about it |
//! | [`schedule`] | a policy's schedule, in words and pictures |
//! | [`plan`] | a plan's arguments, and its policies in words and pictures |
//! | [`flags`] | flags shared by several rehearsals |
//! | [`failure`] | the reasons why a rehearsal has no result |
//! | [`deployed`] | settings in the form that deployments use |
//! | [`in_flight`] | room for waiting events, in words |
//! | [`chart`], [`axis`], [`figure`] | pictures, their colours and axes, and their place on a page |
//! | [`life`] | the picture of one event's life |

pub mod axis;
pub mod chart;
pub mod deployed;
pub mod failure;
pub mod figure;
pub mod flags;
pub mod in_flight;
pub mod life;
pub mod plan;
pub mod schedule;
pub mod simulate;

pub use failure::Failure;
