//! `make bench-handler`: compares the retry handler's start time, batch times and size with those of other functions.
//!
//! The others are an empty function on the same runtime, the handler from an earlier commit, and the Python handler
//! from the article in docs/migrating.md. The last two are optional (see `bench.sh`).
//!
//! Only the ratios of medians are comparable, because the milliseconds depend on the machine.

mod environment;
mod events;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::environment::Environment;

/// Number of times to start each bootstrap, and to measure each kind of first batch.
const STARTS: usize = 25;
/// Number of batches of each kind in one environment.
const BATCHES: usize = 41;
/// Environment variables as the template sets them, for reading pauses and for writing metrics.
const AS_DEPLOYED: [(&str, &str); 2] = [("PAUSES", "/comeback/bench/pauses"), ("METRICS", "stack")];
/// Environment variables with which the handler neither reads pauses nor counts the messages in flight.
const WITHOUT_LOOKS: [(&str, &str); 1] = [("HIDE_UP_TO", "always")];
const MB: f64 = 1e6;

fn main() -> io::Result<()> {
    let programs: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [handler, bare, others @ ..] = programs.as_slice() else {
        return Err(io::Error::other(
            "name the handler's bootstrap, the empty one and, if you have them, before=EARLIER and the article's",
        ));
    };
    let earlier = |program: &PathBuf| program.to_str()?.strip_prefix("before=").map(PathBuf::from);
    // Each program is started once before measuring, because its first run is slower.
    for bootstrap in &programs {
        Environment::start(&earlier(bootstrap).unwrap_or(bootstrap.clone()), &AS_DEPLOYED)?;
    }
    println!("| | empty function | retry handler | ratio |\n|---|---:|---:|---:|");
    starts(handler, bare)?;
    sizes(handler, bare)?;
    let call = batches(handler)?;
    first_batches(handler, call)?;
    for before in others.iter().filter_map(earlier) {
        println!("\n| | before | now | ratio |\n|---|---:|---:|---:|");
        by_turns(&before, handler)?;
    }
    for article in others.iter().filter(|program| earlier(program).is_none()) {
        println!("\n| | retry handler | the article's, in Python | ratio |\n|---|---:|---:|---:|");
        starts(article, handler)?;
        println!("\n| | a call | the article's, in Python | ratio |\n|---|---:|---:|---:|");
        batches(article)?;
    }
    Ok(())
}

fn row(what: &str, bare: f64, handler: f64, unit: &str) {
    println!("| {what} | {bare:.2} {unit} | {handler:.2} {unit} | {:.2} |", handler / bare);
}

fn starts(handler: &Path, bare: &Path) -> io::Result<()> {
    let (mut times, mut memory) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..STARTS {
        for (index, bootstrap) in [bare, handler].into_iter().enumerate() {
            let environment = Environment::start(bootstrap, &AS_DEPLOYED)?;
            times[index].push(milliseconds(environment.until_ready()));
            memory[index].push(environment.memory("VmRSS")? * 1024.0 / MB);
        }
    }
    let ([bare, handler], [bare_memory, handler_memory]) = (times.map(median), memory.map(median));
    row("start to ready", bare, handler, "ms");
    row("memory when ready", bare_memory, handler_memory, "MB");
    Ok(())
}

fn sizes(handler: &Path, bare: &Path) -> io::Result<()> {
    let size = |program: &Path| Ok::<_, io::Error>(std::fs::metadata(program)?.len() as f64 / MB);
    row("bootstrap", size(bare)?, size(handler)?, "MB");
    row("bootstrap, zipped", zipped(bare)?, zipped(handler)?, "MB");
    Ok(())
}

fn zipped(program: &Path) -> io::Result<f64> {
    const DEFLATE: &str = "import sys, zlib; print(len(zlib.compress(open(sys.argv[1], 'rb').read())))";
    let output = Command::new("python3").args(["-c", DEFLATE]).arg(program).output()?;
    let bytes: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().map_err(io::Error::other)?;
    Ok(bytes / MB)
}

/// Compares the median times of batches in a warm environment with the median time of a single call to AWS.
///
/// Returns the call's median time in milliseconds.
fn batches(handler: &Path) -> io::Result<f64> {
    let environment = Environment::start(handler, &AS_DEPLOYED)?;
    let (mut deferring, mut long_deferring, mut invoking) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..BATCHES {
        let (took, _, answer) = environment.handle(events::long_deferrals(round))?;
        expect_kept(&answer, 10)?;
        long_deferring.push(milliseconds(took));
        let (took, _, answer) = environment.handle(events::deferrals(round))?;
        expect_kept(&answer, 10)?;
        deferring.push(milliseconds(took));
        let (took, _, answer) = environment.handle(events::re_invocations(round))?;
        expect_kept(&answer, 0)?;
        invoking.push(milliseconds(took));
    }
    let call = median(environment.calls().into_iter().map(milliseconds).collect());
    for (what, times) in [
        ("ten deferrals", deferring),
        ("ten deferrals of over two minutes", long_deferring),
        ("ten re-invocations", invoking),
    ] {
        row(&format!("{what}, beside one call"), call, median(times), "ms");
    }
    println!("| memory at its most | | {:.2} MB | |", environment.memory("VmHWM")? * 1024.0 / MB);
    Ok(call)
}

/// Compares the handler from an earlier commit with the current one. Each batch is sent to one, then to the other.
fn by_turns(before: &Path, now: &Path) -> io::Result<()> {
    let environments = [Environment::start(before, &AS_DEPLOYED)?, Environment::start(now, &AS_DEPLOYED)?];
    for (batch, what, kept) in [
        (events::deferrals as fn(usize) -> String, "ten deferrals", 10),
        (events::re_invocations, "ten re-invocations", 0),
    ] {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..BATCHES {
            for (times, environment) in times.iter_mut().zip(&environments) {
                let (took, _, answer) = environment.handle(batch(round))?;
                expect_kept(&answer, kept)?;
                times.push(milliseconds(took));
            }
        }
        let [before, now] = times.map(median);
        row(what, before, now, "ms");
    }
    Ok(())
}

/// Compares the time for an environment's first batch with `call`, the time of a single call to AWS.
fn first_batches(handler: &Path, call: f64) -> io::Result<()> {
    for (variables, how) in
        [(&WITHOUT_LOOKS[..], "HIDE_UP_TO=always, no PAUSES"), (&AS_DEPLOYED, "as deployed")]
    {
        for (batch, what, kept) in [
            (events::deferrals as fn(usize) -> String, "ten deferrals", 10),
            (events::re_invocations, "ten re-invocations", 0),
        ] {
            let mut times = Vec::new();
            for round in 0..STARTS {
                let environment = Environment::start(handler, variables)?;
                let (_, at, answer) = environment.handle(batch(round))?;
                expect_kept(&answer, kept)?;
                times.push(milliseconds(environment.since_start(at) - environment.until_ready()));
            }
            row(&format!("ready to first batch done, {what}, {how}"), call, median(times), "ms");
        }
    }
    Ok(())
}

fn expect_kept(answer: &str, messages: usize) -> io::Result<()> {
    match events::kept(answer) {
        Some(kept) if kept == messages => Ok(()),
        _ => Err(io::Error::other(format!(
            "{messages} messages should be kept, and the handler answered {answer}"
        ))),
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
