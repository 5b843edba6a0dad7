use comeback_tests::Operator;

use crate::world::World;

pub(crate) async fn a_quiet_stack_has_nothing_that_waits(world: &World) {
    let stack = world.deploy("quiet", "").await;
    let ministack = world.ministack().await;
    let operator = Operator::of_command(ministack, "status", &stack, "none");
    let status = operator.comeback("status --stack quiet --json").json(0);
    assert_eq!(status["handler"], stack.output("RetryHandlerName"));
    assert_eq!(status["in_flight"], 0);
}
