use comeback_tests::{Operator, eventually, scratch};

use crate::world::World;

/// Runs `make local` without a terminal, so that it does not prompt for events.
pub(crate) async fn local_stack_is_healthy_and_serves_until_stopped(world: &World) {
    // `make local` builds the same functions, and finds them already built after this wait.
    world.built().await;
    let operator = Operator::of(world.ministack().await);
    let mut shell = operator.shell().clone().with("LOCAL", env!("CARGO_BIN_EXE_local"));
    // Without this variable, `make local` would build the command again, with a compiler other than the tests'.
    let compiler = "RUSTC_WORKSPACE_WRAPPER";
    if let Some(set) = std::env::var_os(compiler) {
        shell = shell.with(compiler, set);
    }
    let path = scratch("operate-local").join("output");
    let local = shell.start("exec \"$LOCAL\"", &path).unwrap_or_else(|error| panic!("{error}"));
    let served =
        async || Some(local.log()).filter(|log| log.contains("MiniStack serves until a signal stops it"));
    let log = eventually("the first event's end", served).await;
    assert!(log.contains("Retry 3 probably succeeded: "), "{log}");
    let exports = log.lines().find(|line| line.starts_with("unset AWS_PROFILE")).expect("a line to paste");
    let checked = shell.run(&format!("{exports}\n\"$COMEBACK\" doctor"));
    let checked = checked.unwrap_or_else(|error| panic!("{error}"));
    assert!(!checked.contains("BROKEN"), "{checked}");
    let console = log.lines().find(|line| line.ends_with(" ui")).expect("a line to paste");
    let status = shell.run(&console.replace(" ui", " status"));
    assert!(status.is_ok_and(|status| status.contains("Waiting")), "{console}");
    drop(local);
    let log = std::fs::read_to_string(path).expect("it has printed something");
    assert!(log.ends_with("\nstopping MiniStack\n"), "{log}");
}
