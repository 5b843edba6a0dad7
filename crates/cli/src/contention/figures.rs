use std::path::Path;

use comeback_contention::{Report, Strategy};
use serde::Serialize;

#[derive(Serialize)]
struct Row {
    clients: u32,
    strategy: Strategy,
    runs: u32,
    time_ms: f64,
    time_ms_error: Option<f64>,
    calls: f64,
    calls_error: Option<f64>,
}

/// A row for each point; standard errors are empty where there was one run.
pub(super) fn write(file: &Path, report: &Report) -> csv::Result<()> {
    let mut writer = csv::Writer::from_path(file)?;
    for cell in &report.cells {
        writer.serialize(Row {
            clients: cell.clients,
            strategy: cell.strategy,
            runs: cell.runs,
            time_ms: cell.time_ms,
            time_ms_error: cell.time_ms_error,
            calls: cell.calls,
            calls_error: cell.calls_error,
        })?;
    }
    writer.flush()?;
    Ok(())
}
