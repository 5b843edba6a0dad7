//! The tables that `comeback contention` prints.

use comeback_contention::{Cell, Strategy, StudyReport, growth_exponent};
use comeback_operate::numbers::grouped;
use comfy_table::Table;

use crate::tables::{self, align_right};

pub(super) fn tables(report: &StudyReport) -> String {
    let mut calls = table(report, |cell| number(cell.calls));
    let exponents = strategies(report).map(|strategy| match growth_exponent(&report.cells, strategy) {
        Some(exponent) => format!("N^{exponent:.2}"),
        None => String::new(),
    });
    let exponents: Vec<String> = exponents.collect();
    if exponents.iter().any(|exponent| !exponent.is_empty()) {
        calls.add_row(std::iter::once("growth".to_owned()).chain(exponents));
    }
    format!(
        "Time until the last of N clients is done, in ms ({runs})\n{}\n\nCalls, including refused ones \
         ({runs})\n{calls}",
        table(report, |cell| number(cell.time_ms)),
        runs = runs(report),
    )
}

fn table(report: &StudyReport, figure: impl Fn(&Cell) -> String) -> Table {
    let mut table = tables::table();
    table.set_header(std::iter::once("N").chain(strategies(report).map(Strategy::name)));
    for clients in distinct(report.cells.iter().map(|cell| cell.clients)) {
        let figures = strategies(report).map(|strategy| {
            let cell = report.cells.iter().find(|cell| (cell.clients, cell.strategy) == (clients, strategy));
            cell.map_or_else(String::new, &figure)
        });
        table.add_row(std::iter::once(clients.to_string()).chain(figures));
    }
    align_right(&mut table, 0..=strategies(report).count());
    table
}

/// The strategies in a report, each once, in order of first appearance.
pub(super) fn strategies(report: &StudyReport) -> impl Iterator<Item = Strategy> {
    distinct(report.cells.iter().map(|cell| cell.strategy)).into_iter()
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

pub(super) fn runs(report: &StudyReport) -> String {
    let runs = || report.cells.iter().map(|cell| cell.runs);
    match (runs().min().unwrap_or(0), runs().max().unwrap_or(0)) {
        (1, 1) => "one run per point".to_owned(),
        (least, most) if least == most => format!("mean of {most} runs"),
        (least, most) => format!("means of {least} to {most} runs"),
    }
}

/// Formats a mean. A mean below 100 gets one decimal place: `39.0`, `796`, `2,422`.
fn number(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(clients: u32, strategy: Strategy, runs: u32, [time_ms, calls]: [f64; 2]) -> Cell {
        Cell { clients, strategy, time_ms, calls, runs, time_ms_error: None, calls_error: None }
    }

    #[test]
    fn numbers_have_three_digits_or_more() {
        let numbers = [38.96, 99.94, 99.96, 796.4, 2_422.1, 101_374.0].map(number);
        assert_eq!(numbers, ["39.0", "99.9", "100", "796", "2,422", "101,374"]);
    }

    fn columns(line: &str) -> Vec<&str> {
        line.trim_matches('│').split('┆').map(str::trim).collect()
    }

    #[test]
    fn points_stand_under_their_strategy_and_gaps_stay_empty() {
        let cells = vec![
            cell(10, Strategy::None, 100, [380.0, 50.0]),
            cell(10, Strategy::Full, 100, [465.0, 40.0]),
            cell(100, Strategy::Full, 1, [4_917.0, 800.0]),
        ];
        let text = tables(&StudyReport { cells });
        let rows: Vec<Vec<&str>> = text.lines().map(columns).collect();
        for row in [
            vec!["N", "none", "full"],
            vec!["10", "380", "465"],
            vec!["100", "", "4,917"],
            vec!["10", "50.0", "40.0"],
            vec!["100", "", "800"],
            vec!["growth", "", "N^1.30"],
        ] {
            assert!(rows.contains(&row), "{row:?} is not in\n{text}");
        }
        assert!(text.starts_with("Time until the last of N clients is done, in ms (means of 1 to 100 runs)"));
    }

    #[test]
    fn one_number_of_clients_has_no_growth() {
        let text = tables(&StudyReport { cells: vec![cell(10, Strategy::Full, 1, [465.0, 40.0])] });
        assert!(!text.contains("growth") && text.contains("one run per point"), "{text}");
    }
}
