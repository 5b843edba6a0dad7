//! The parts of the page for `templates/report.html`, which escapes all text; only charts are markup.

use askama::Template;

use crate::chart::{Colour, PALETTE};
use crate::figure::{Chart, Table};

/// The whole page.
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
    /// Pictures of each target in the first run. Empty if there is only one.
    pub(super) target_charts: Vec<Chart>,
    pub(super) depth: Vec<String>,
    pub(super) queue_charts: [Chart; 2],
    pub(super) recovery: Option<(Chart, Table)>,
    /// True if the run was made under every jitter.
    pub(super) by_jitter: bool,
    pub(super) life: Option<Chart>,
    /// The command that looks for a policy that recovers sooner, or costs less.
    pub(super) plan: Option<String>,
    pub(super) limit: Vec<String>,
    pub(super) limit_by_rate: Table,
    pub(super) cost: Table,
    pub(super) command: String,
}

/// A figure in large type, for each policy.
pub struct Tile {
    /// Its name.
    pub label: &'static str,
    /// The name of each policy, and its figure.
    pub values: Vec<(String, String)>,
}
