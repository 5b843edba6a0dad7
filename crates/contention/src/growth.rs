use crate::strategy::Strategy;
use crate::study::Cell;

/// e where a strategy's calls grow as (clients)ᵉ: the slope of ln(calls) over ln(clients) by least
/// squares. `None` for fewer than two numbers of clients.
///
/// Without backoff every change refuses the writes of all clients still there, so e nears 2; perfect
/// spacing would give 1.
pub fn growth_exponent(cells: &[Cell], strategy: Strategy) -> Option<f64> {
    let logs: Vec<(f64, f64)> = cells
        .iter()
        .filter(|cell| cell.strategy == strategy)
        .map(|cell| (f64::from(cell.clients).ln(), cell.calls.ln()))
        .collect();
    let n = logs.len() as f64;
    let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / n;
    let spread: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let shared: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (spread > 0.0).then(|| shared / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(clients: u32, strategy: Strategy, calls: f64) -> Cell {
        Cell { clients, strategy, time_ms: 1.0, calls, runs: 1, time_ms_error: None, calls_error: None }
    }

    #[test]
    fn a_power_law_gives_its_exponent() {
        let power = |n: u32| cell(n, Strategy::Full, 0.2 * f64::from(n).powf(1.7));
        let mut cells = vec![power(10), power(100), power(90_000)];
        cells.push(cell(10, Strategy::None, 7.0));
        let exponent = growth_exponent(&cells, Strategy::Full).unwrap();
        assert!((exponent - 1.7).abs() < 1e-12, "{exponent}");
    }

    #[test]
    fn is_the_least_squares_slope() {
        let e = std::f64::consts::E;
        let cells = [(1, 1.0), (2, 4.0 * e), (4, 16.0)].map(|(n, calls)| cell(n, Strategy::Equal, calls));
        // A point off the line in the middle lifts it and does not turn it.
        assert!((growth_exponent(&cells, Strategy::Equal).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn one_number_of_clients_shows_no_growth() {
        let cells = [cell(10, Strategy::Full, 39.0)];
        assert_eq!(growth_exponent(&cells, Strategy::Full), None);
        assert_eq!(growth_exponent(&cells, Strategy::None), None);
    }
}
