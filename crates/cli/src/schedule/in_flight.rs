//! The in-flight limit, in words.

use comeback_timelapse::InFlight;

use crate::duration::short;
use crate::rate;
use crate::summary_table::thousands;

/// What a rate of failing events comes to, what then happens, and what there is room for.
pub(crate) fn text(in_flight: &InFlight) -> String {
    let InFlight { events_per_second, mean_wait_seconds, full_after_seconds, .. } = *in_flight;
    let limit = thousands(in_flight.in_flight_limit as u64);
    let share = in_flight.in_flight / in_flight.in_flight_limit as f64;
    let compared = if share < 1.0 {
        format!("{} % of", rate::rounded(share * 100.0))
    } else {
        format!("{} times", rate::rounded(share))
    };
    let sum = format!(
        "At {}, failing events are in flight for {} each on average: {} at once, {compared} SQS's limit of {limit}.",
        rate::text(events_per_second),
        short(mean_wait_seconds),
        rate::rounded(in_flight.in_flight),
    );
    let then = full_after_seconds.map_or(String::new(), |seconds| format!("\n{}", once_full(seconds)));
    let room = in_flight
        .highest_events_per_second
        .map_or(String::new(), |highest| format!("\nThis policy has room for {}.", rate::text(highest)));
    format!("{sum}{then}{room}")
}

fn once_full(seconds: f64) -> String {
    format!(
        "The limit is reached {} after the target goes down. From then on SQS hands out a message only when\n\
         another leaves: retries come late, without an error, and events reach MAX_AGE with fewer of them.\n\
         Nothing is lost unless that lasts for 14 days. A shorter MAX_AGE or several queues are the way out.",
        short(seconds)
    )
}
