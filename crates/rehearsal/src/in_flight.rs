//! Describes in words how many events wait at the same time, and whether they exceed the queue's in-flight limit.

use comeback_engine::MAXIMUM_CONCURRENCY_RANGE;
use comeback_timelapse::{InFlight, MoveCosts, Scenario};

use comeback_operate::durations::{self, short};
use comeback_operate::numbers::{grouped, rate_text, rounded};

/// Explains what happens once the queue reaches its in-flight limit.
pub const ONCE_FULL: &str = "\
From then on, SQS delivers a message only when another leaves: retries come late, without an error, and events
reach MAX_AGE with fewer of them. Nothing is lost unless that lasts for 14 days. Lower HIDE_UP_TO: the other
messages are then sent again with a delay, without a limit.";

/// Describes the waiting events at a steady failure rate, the pollers needed, and the effects of the in-flight limit.
pub fn in_words(in_flight: &InFlight) -> String {
    let full = in_flight.full_after_seconds.map_or(String::new(), |_| format!("{ONCE_FULL}\n"));
    format!("{}\n{full}{}", figures_in_words(in_flight), pollers_in_words(in_flight.pollers))
}

/// Like [`in_words`], but omits the pollers and the consequences of reaching the in-flight limit.
pub fn figures_in_words(in_flight: &InFlight) -> String {
    let figures = match in_flight.highest_events_per_second {
        Some(highest) => compared_with_limit(in_flight, highest),
        None => without_limit(in_flight),
    };
    let full = in_flight.full_after_seconds.map_or(String::new(), |seconds| {
        format!("\nThe limit is reached {} after the target goes down.", short(seconds))
    });
    figures + &full
}

fn compared_with_limit(in_flight: &InFlight, highest: f64) -> String {
    let limit = grouped(in_flight.in_flight_limit as u64);
    let share = in_flight.in_flight / in_flight.in_flight_limit as f64;
    let compared = if share < 1.0 {
        format!("{} % of", rounded(share * 100.0))
    } else {
        format!("{} times", rounded(share))
    };
    format!(
        "At {}, each failing event is in flight for {} on average: {} at once, {compared} SQS's limit of \
         {limit}.\nThis policy has room for {}.",
        rate_text(in_flight.events_per_second),
        short(in_flight.mean_wait_seconds),
        rounded(in_flight.in_flight),
        rate_text(highest),
    )
}

fn without_limit(in_flight: &InFlight) -> String {
    let rate = rate_text(in_flight.events_per_second);
    if in_flight.waiting <= 0.0 {
        return format!("At {rate}, no failing event waits: each is dead-lettered at once.");
    }
    let waiting = format!(
        "At {rate}, each failing event waits {} on average: {} at once, when as many are dead-lettered as \
         arrive.\nAny number of events can wait.",
        short(in_flight.mean_wait_seconds),
        rounded(in_flight.waiting),
    );
    let MoveCosts { delayed, per_second, usd_per_hour, usd_per_million_event_hours } = in_flight.moves;
    let Some(usd_per_million) = usd_per_million_event_hours else {
        return format!("{waiting} HIDE_UP_TO has room for all of them: none is sent again.");
    };
    let hidden = match in_flight.in_flight {
        0.0 => "None is hidden (HIDE_UP_TO).".to_owned(),
        hidden => {
            let most = rounded(in_flight.in_flight_at_most);
            format!("About {} are hidden (HIDE_UP_TO), {most} at most.", rounded(hidden))
        }
    };
    format!(
        "{waiting} {hidden}\nThe other {} are delayed messages, of which at most {} are sent again.\nIn \
         batches of ten that costs {} USD an hour, or {} USD for a million hours of waiting.",
        rounded(delayed),
        rate_text(per_second),
        rounded(usd_per_hour),
        rounded(usd_per_million),
    )
}

/// Describes the number of pollers needed and, if Lambda does not allow that number, what to do.
pub fn pollers_in_words(needed: u64) -> String {
    let run_time = durations::text(Scenario::default().handler_run_time);
    let most = *MAXIMUM_CONCURRENCY_RANGE.end();
    let assumed = format!("if the handler takes {run_time} for a batch of ten");
    if needed > most {
        return format!(
            "It takes {} pollers, {assumed}, but MAXIMUM_CONCURRENCY is at most {}:\nretries come late, \
             without an error. Use longer backoffs or several retry queues.",
            grouped(needed),
            grouped(most)
        );
    }
    format!("It takes a MAXIMUM_CONCURRENCY of at least {}, {assumed}.", grouped(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_pollers_than_lambda_allows_are_reported() {
        assert_eq!(
            pollers_in_words(1_000),
            "It takes a MAXIMUM_CONCURRENCY of at least 1,000, if the handler takes 100ms for a batch of ten."
        );
        let text = pollers_in_words(1_001);
        let expected = "It takes 1,001 pollers, if the handler takes 100ms for a batch of ten, but \
                        MAXIMUM_CONCURRENCY is at most 1,000:\n";
        assert!(text.starts_with(expected), "{text}");
    }
}
