use std::path::Path;

use comeback_timelapse::Minute;
use serde::Serialize;

use crate::failure::Failure;

#[derive(Serialize)]
struct Line {
    minute: usize,
    retries: u32,
    delivered: u32,
    dead_lettered: u32,
    in_flight: u32,
    visible: u32,
    delayed: u32,
}

/// Writes a line for each minute of the run, the quiet ones too: `minute` counts from 0.
pub(super) fn write(path: &Path, minutes: &[Minute]) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_path(path).map_err(|error| Failure::write(path, error))?;
    for (minute, counts) in minutes.iter().enumerate() {
        let Minute { retries, delivered, dead_lettered, in_flight, visible, delayed } = *counts;
        let line = Line { minute, retries, delivered, dead_lettered, in_flight, visible, delayed };
        writer.serialize(line).map_err(|error| Failure::write(path, error))?;
    }
    writer.flush().map_err(|error| Failure::write(path, error))
}
