//! Listens for signals that ask a program to stop: Ctrl-C, and SIGTERM on Unix.

use std::process::exit;

use comeback_operate::Interrupt;

/// Raises `interrupt` at the first Ctrl-C or SIGTERM, and exits with code 130 at the second.
pub(crate) fn raise_when_stopped(interrupt: Interrupt) {
    let Ok(mut signals) = Signals::listen() else { return };
    tokio::spawn(async move {
        signals.next().await;
        interrupt.raise();
        anstream::eprintln!("\nstopping; press Ctrl-C again to quit immediately");
        signals.next().await;
        exit(130);
    });
}

#[cfg(unix)]
struct Signals([tokio::signal::unix::Signal; 2]);

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_terminated_command_stops_as_after_ctrl_c() {
        let interrupt = Interrupt::default();
        raise_when_stopped(interrupt.clone());
        let kill = std::process::Command::new("kill").arg(std::process::id().to_string()).status();
        assert!(kill.unwrap().success());
        interrupt.raised().await;
    }
}
