use comeback_tests::{assert_runs_under_the_emulator, root};

use crate::world::World;

pub(crate) async fn the_bootstrap_runs_under_the_runtime_interface_emulator(world: &World) {
    world.built().await;
    let bootstrap = root().join(".aws-sam/build/RetryHandler/bootstrap");
    assert_runs_under_the_emulator(&world.ministack().await.shell(), &bootstrap, "emulator").await;
}
