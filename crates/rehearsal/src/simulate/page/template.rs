//! The data that `templates/report.html` renders. The template escapes all text; only charts are markup.

use askama::Template;

use crate::chart::{Colour, PALETTE};
use crate::figure::{Chart, Table};

/// The whole simulation report.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    pub(super) version: &'static str,
    pub(super) palette: [Colour; PALETTE.len()],
    pub(super) headline: String,
    pub(super) tiles: Vec<Tile>,
    pub(super) outcome: Vec<Table>,
    pub(super) has_outage: bool,
    pub(super) retries: Vec<String>,
    pub(super) retry_charts: [Chart; 2],
    /// Charts of each target in the first run; empty if there is only one target.
    pub(super) target_charts: Vec<Chart>,
    pub(super) depth: Vec<String>,
    pub(super) queue_charts: [Chart; 2],
    pub(super) recovery: Option<(Chart, Table)>,
    /// True if the policy was also run under every other jitter.
    pub(super) by_jitter: bool,
    pub(super) life: Option<Chart>,
    /// The `comeback plan` command that looks for a policy that recovers sooner or costs less.
    pub(super) plan: Option<String>,
    pub(super) limit: Vec<String>,
    pub(super) limit_by_rate: Table,
    pub(super) cost: Table,
    pub(super) command: String,
}

/// A figure in large type, shown for each policy.
pub struct Tile {
    /// Name of the figure, such as `delivered`.
    pub label: &'static str,
    /// For each policy, its name and the value of the figure.
    pub values: Vec<(String, String)>,
}
