use std::time::Duration;

use comeback_tests::{eventually, pages};

use crate::world::World;

/// The stack was deployed with the first block, for this machine's architecture.
pub(crate) async fn the_example_can_be_watched_with_the_commands_of_the_pages(world: &World) {
    let (ministack, _) = (world.ministack().await, world.comeback().await);
    let blocks = pages::blocks("docs/deploy-sam.md", "From a checkout");
    let [deploy, invoke, logs] =
        <[String; 3]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not three blocks: {blocks:#?}"));
    assert_eq!(deploy, "export PATH=\"$PWD/.tools/sam/bin:$PATH\"\nsam build\nsam deploy");
    ministack.shell().run(&invoke).unwrap_or_else(|error| panic!("{error}"));
    eventually("the logs to report a success", Duration::from_secs(90), async || {
        let logs = ministack.shell().run(&logs).unwrap_or_else(|error| panic!("{error}"));
        logs.contains("succeeded").then_some(())
    })
    .await;
}
