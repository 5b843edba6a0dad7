use comeback_timelapse::Schedule;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Where ticks may stand, with what they say.
const MOMENTS: [(f64, &str); 18] = [
    (1.0, "1s"),
    (2.0, "2s"),
    (5.0, "5s"),
    (10.0, "10s"),
    (30.0, "30s"),
    (MINUTE, "1m"),
    (2.0 * MINUTE, "2m"),
    (5.0 * MINUTE, "5m"),
    (10.0 * MINUTE, "10m"),
    (30.0 * MINUTE, "30m"),
    (HOUR, "1h"),
    (2.0 * HOUR, "2h"),
    (6.0 * HOUR, "6h"),
    (12.0 * HOUR, "12h"),
    (DAY, "1d"),
    (2.0 * DAY, "2d"),
    (7.0 * DAY, "7d"),
    (14.0 * DAY, "14d"),
];

/// Time since the first failure, from left to right: logarithmic where retries come thinner and
/// thinner, linear where they come evenly.
pub(super) struct TimeAxis {
    logarithmic: bool,
    start: f64,
    end: f64,
}

impl TimeAxis {
    /// From the first retry to `MAX_AGE`, or to the last retry where `MAX_RETRIES` comes long before.
    pub(super) fn of(schedule: &Schedule, max_age: f64) -> Self {
        let means: Vec<f64> =
            schedule.retries.iter().map(|retry| retry.since_first_failure_seconds.mean).collect();
        let last = schedule.retries.iter().map(|retry| retry.since_first_failure_seconds.p95).max();
        let last = f64::from(last.unwrap_or(1));
        let halfway = means.get(means.len() / 2).copied().unwrap_or(0.0);
        let first = schedule.retries.first().map_or(1, |retry| retry.since_first_failure_seconds.p5);
        let end = if last * 3.0 < max_age { last * 1.1 } else { max_age };
        let logarithmic = halfway < 0.2 * last;
        let start = if logarithmic { f64::from(first.max(1)) / 1.3 } else { 0.0 };
        Self { logarithmic, start, end }
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// Whether it is on the axis.
    pub(super) fn shows(&self, seconds: f64) -> bool {
        (self.start..=self.end).contains(&seconds)
    }

    /// How far to the right a moment is, 0 to 1.
    pub(super) fn share(&self, seconds: f64) -> f64 {
        let share = if self.logarithmic {
            (seconds.max(self.start) / self.start).ln() / (self.end / self.start).ln()
        } else {
            (seconds - self.start) / (self.end - self.start)
        };
        share.clamp(0.0, 1.0)
    }

    /// Round moments at least this share of the axis apart: where, and what to write.
    pub(super) fn ticks(&self, apart: f64) -> Vec<(f64, String)> {
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for (seconds, label) in self.moments() {
            let share = self.share(seconds);
            let room = ticks.last().is_none_or(|(last, _)| share - last >= apart);
            if self.shows(seconds) && room {
                ticks.push((share, label));
            }
        }
        ticks
    }

    fn moments(&self) -> Vec<(f64, String)> {
        if self.logarithmic {
            return MOMENTS.iter().map(|&(seconds, label)| (seconds, label.to_owned())).collect();
        }
        // Multiples of the least round step that gives at most eight.
        let steps = MOMENTS.iter().map(|&(seconds, _)| seconds);
        let step = steps.clone().find(|step| self.end / step <= 8.0).unwrap_or(14.0 * DAY);
        let tick = |i| {
            let seconds = step * f64::from(i);
            (seconds, crate::duration::text(std::time::Duration::from_secs(seconds as u64)))
        };
        (0..=(self.end / step) as u32).map(tick).collect()
    }
}
