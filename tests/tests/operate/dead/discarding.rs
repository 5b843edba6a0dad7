use std::path::Path;

use comeback_tests::{MiniStack, Operator, Stack, eventually, scratch};
use serde_json::json;

use super::{counts, dead_letters_of, example, of_handler, put};
use crate::world::World;

pub(crate) async fn discarded_dead_letters_come_back_and_ctrl_c_gives_back(world: &World) {
    let stack = world.deploy("discard", "").await;
    let ministack = world.ministack().await;
    let operator = |command: &str| Operator::of_command(ministack, command, &stack, "none");
    let (discard, import, list) = (operator("dead discard"), operator("dead import"), operator("dead list"));
    let mut dead_letters: Vec<_> =
        (0..120).map(|n| of_handler(&example(&stack), &format!("key-{n}"), "Timeout")).collect();
    dead_letters.extend((0..3).map(|n| (format!("{{\"odd\":{n}}}"), Some("malformed_record"))));
    dead_letters.push(("hello".into(), None));
    put(ministack, &stack, &dead_letters).await;
    let all = [(120, "max_age", Some("Timeout")), (3, "malformed_record", None), (1, "unknown", None)];

    let folder = scratch("discard");
    let (odd, rest) = (folder.join("odd.jsonl"), folder.join("rest.jsonl"));
    let (odd, rest) = (odd.display(), rest.display());
    let some = format!("dead discard --stack discard --reason malformed_record --export {odd}");
    let report = discard.comeback(&format!("{some} --json --yes")).json(0);
    assert_eq!(report["discarded"], 3, "{report}");
    let again = discard.comeback(&some);
    assert!(again.stderr.contains("exists and is not overwritten"), "{}", again.stderr);
    assert_eq!(again.code, 2);
    let text =
        discard.comeback(&format!("dead discard --stack discard --all --export {rest} --yes")).ended(0);
    assert!(text.contains("discarded 121 dead-letters; `comeback dead import"), "{text}");
    assert_eq!(dead_letters_of(ministack, &stack).await, (0, 0));
    let empty = list.comeback("dead list --stack discard --json").json(0);
    assert_eq!((&empty["chosen"], &empty["groups"]), (&json!(0), &json!([])), "{empty}");

    let dry = import.comeback(&format!("dead import {rest} --stack discard --dry-run")).ended(0);
    assert!(dry.starts_with("to import: 121 dead-letters to "), "{dry}");
    let text = import.comeback(&format!("dead import - --stack discard --yes < {odd}")).ended(0);
    assert!(text.ends_with("imported 3 dead-letters\n"), "{text}");
    let report = import.comeback(&format!("dead import {rest} --stack discard --json --yes")).json(0);
    assert_eq!(report["imported"], 121, "{report}");
    let report = import.comeback(&format!("dead import {rest} --stack discard --json --yes")).json(0);
    assert_eq!((&report["imported"], &report["before"]), (&json!(0), &json!(121)), "{report}");
    assert_eq!(counts(&list.comeback("dead list --stack discard --json").json(0)["groups"]), all);

    denials(&import, &list, &folder);
    assert_eq!(dead_letters_of(ministack, &stack).await, (124, 0));
    ctrl_c(ministack, &stack, &operator("dead redrive")).await;
}

/// Asserts that each command, with another command's permissions, exits with 1 and names the first missing permission.
fn denials(import: &Operator, list: &Operator, folder: &Path) {
    let export = folder.join("denied.jsonl");
    let imported = folder.join("again.jsonl");
    std::fs::copy(folder.join("odd.jsonl"), &imported).expect("the export is there");
    let export = format!("discard --all --yes --export {}", export.display());
    for (other, arguments, action) in [
        (import, "list", "sqs:ReceiveMessage"),
        (import, "show key-1", "sqs:ReceiveMessage"),
        (import, "redrive --all --yes", "sqs:ReceiveMessage"),
        (import, &export, "sqs:ReceiveMessage"),
        (list, &format!("import --yes {}", imported.display()), "sqs:SendMessage"),
    ] {
        let denied = other.comeback(&format!("dead {arguments} --stack discard"));
        assert!(denied.stderr.contains(&format!("error: {action}")), "{arguments}: {}", denied.stderr);
        assert_eq!(denied.code, 1, "{arguments}");
    }
}

/// Asserts that an interrupted redrive finishes the dead-letters in progress, and makes all others visible again.
async fn ctrl_c(ministack: &MiniStack, stack: &Stack, redrive: &Operator) {
    let process = scratch("ctrl-c").join("process");
    let shell = redrive.shell().clone().with("PROCESS", &process);
    let command = "echo $$ >\"$PROCESS\"; exec \"$COMEBACK\" dead redrive --stack discard --error Timeout --rate 2/s --yes";
    let running = tokio::task::spawn_blocking(move || shell.output(command));
    eventually("a dead-letter to be redriven", async || {
        let (visible, hidden) = dead_letters_of(ministack, stack).await;
        (visible + hidden < 124).then_some(())
    })
    .await;
    let interrupt = ministack.shell().with("PROCESS", &process).run("kill -INT \"$(cat \"$PROCESS\")\"");
    interrupt.unwrap_or_else(|error| panic!("{error}"));
    let output = running.await.expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("error: interrupted: redrove "), "{stderr}");
    let (visible, hidden) = dead_letters_of(ministack, stack).await;
    assert!(hidden == 0 && (100..124).contains(&visible), "{visible} visible, {hidden} hidden");
}
