//! The in-flight limit, in words.

use comeback_timelapse::InFlight;
use indicatif::HumanCount;

use crate::text::durations::short;
use crate::text::numbers::rounded;
use crate::text::rates;

/// What happens at the limit.
pub(crate) const ONCE_FULL: &str = "\
From then on SQS hands out a message only when another leaves: retries come late, without an error, and
events reach MAX_AGE with fewer of them. Nothing is lost unless that lasts for 14 days. A shorter MAX_AGE
or several queues are the way out.";

/// How many messages a rate of failing events keeps in flight, whether and when that reaches the
/// limit, what happens then, and the highest rate there is room for.
pub(crate) fn in_words(in_flight: &InFlight) -> String {
    let figures = figures_in_words(in_flight);
    if in_flight.full_after_seconds.is_some() { format!("{figures}\n{ONCE_FULL}") } else { figures }
}

/// The same without what happens at the limit.
pub(crate) fn figures_in_words(in_flight: &InFlight) -> String {
    let InFlight { events_per_second, mean_wait_seconds, full_after_seconds, .. } = *in_flight;
    let limit = HumanCount(in_flight.in_flight_limit as u64);
    let share = in_flight.in_flight / in_flight.in_flight_limit as f64;
    let compared = if share < 1.0 {
        format!("{} % of", rounded(share * 100.0))
    } else {
        format!("{} times", rounded(share))
    };
    let sum = format!(
        "At {}, failing events are in flight for {} each on average: {} at once, {compared} SQS's limit of {limit}.",
        rates::text(events_per_second),
        short(mean_wait_seconds),
        rounded(in_flight.in_flight),
    );
    let full = full_after_seconds.map_or(String::new(), |seconds| {
        format!("\nThe limit is reached {} after the target goes down.", short(seconds))
    });
    let room = in_flight
        .highest_events_per_second
        .map_or(String::new(), |highest| format!("\nThis policy has room for {}.", rates::text(highest)));
    format!("{sum}{room}{full}")
}
