//! Rehearsals of [Comeback](https://github.com/comeback-retries/comeback)'s retries, as values and pictures.
//!
//! A rehearsal is a *simulated day*, the *schedule* of a policy, or a *plan*, which finds a policy for a goal.
//! `comeback-timelapse` runs rehearsals. This crate parses their flags and shows their figures.
//!
//! | file | holds |
//! |---|---|
//! | [`simulate`] | the arguments of a run, its figures, and the page about it |
//! | [`schedule`] | a policy's schedule, in words and pictures |
//! | [`plan`] | a plan's arguments, and its policies in words and pictures |
//! | [`flags`] | flags shared by several rehearsals |
//! | [`failure`] | the failures of a rehearsal |
//! | [`deployed`] | settings in the form that deployments use |
//! | [`in_flight`] | how many events wait at the same time, in words |
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
