use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use comeback_tests::{ARCHITECTURE, eventually, free_port, request, root, scratch};

use crate::cargo_lambda::assert_kept;
use crate::world::World;

/// AWS's own emulator of the Lambda runtime interface, which the SAM CLI brings along.
pub(crate) async fn the_bootstrap_runs_under_the_runtime_interface_emulator(world: &World) {
    const SAMPLE: &str = "events/target-not-allowed.json";
    world.built().await;
    let directory = scratch("emulator");
    let emulator = directory.join("aws-lambda-rie");
    let find = ".tools/sam/bin/python -c 'import samcli; print(samcli.__path__[0])'";
    let shell = world.ministack().await.shell();
    let found = shell.run(find).unwrap_or_else(|error| panic!("{error}"));
    fs::copy(format!("{}/local/rapid/aws-lambda-rie-{ARCHITECTURE}", found.trim()), &emulator)
        .expect("the emulator is there");
    fs::set_permissions(&emulator, Permissions::from_mode(0o755)).expect("it may be made executable");

    let (port, runtime_port) = (free_port(), free_port());
    let server = shell
        .with("TARGET_FUNCTIONS", "arn:aws:lambda:eu-west-1:123456789012:function:flaky-target")
        .with("DEAD_LETTER_QUEUE_URL", "http://127.0.0.1:9/123456789012/dead-letters")
        .with("EMULATOR", &emulator)
        .with("BOOTSTRAP", root().join(".aws-sam/build/RetryHandler/bootstrap"))
        .start(
            &format!(
                "exec \"$EMULATOR\" --log-level error --runtime-interface-emulator-address 127.0.0.1:{port} \
                 --runtime-api-address 127.0.0.1:{runtime_port} \"$BOOTSTRAP\""
            ),
            &directory.join("emulator.log"),
        )
        .expect("the emulator starts");
    let listens = async || TcpStream::connect(("127.0.0.1", port)).ok();
    eventually("the emulator to listen", Duration::from_secs(30), listens).await;
    let event = fs::read_to_string(root().join(SAMPLE)).expect("the sample can be read");
    let answer = request("POST", port, "/2015-03-31/functions/function/invocations", &event);
    // Nobody answers for the dead-letter queue, so the message is kept.
    assert_kept(&answer.unwrap_or_else(|error| panic!("{error}\n{}", server.log())), SAMPLE);
    assert!(server.log().contains(r#""reason":"target_not_allowed""#), "{}", server.log());
}
