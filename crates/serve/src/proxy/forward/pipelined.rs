//! One attempt at a place on a pipelined connection.

use std::rc::Rc;

use super::begin::begin;
use super::request::Forward;
use crate::exchange::downstream::Downstream;
use crate::proxy::download::{Done, Download};
use crate::proxy::failure::Failure;
use crate::proxy::group::Group;
use crate::proxy::lease::Exclusive;
use crate::proxy::pipelined::{Behind, Response, Submission};
use crate::proxy::progress::{Progress, ResponseSide};

/// Waits for the response on a shared connection and relays it.
pub(super) async fn on_pipelined(
    request: Submission,
    forward: &mut Forward,
    client: &mut Downstream<'_>,
    to: (&Rc<Group>, u32),
    progress: &Progress,
) -> Result<(), Failure> {
    forward.is_sent_now(&client.worker.core);
    let response = client.unless_hung_up(request.response()).await;
    let (transport, mut input, behind) = match response.map_err(Failure::Client)?? {
        Response::Whole(input) => (None, input, Behind::Others),
        Response::Handed(transport, input, behind) => (Some(transport), input, behind),
    };
    progress.request_is_sent();
    progress.response_is(ResponseSide::Arriving);
    let (attempt, _, reply) = begin(forward, client, to, progress);
    let mut download = Download {
        attempt,
        server: transport.as_ref(),
        server_input: &mut input,
        reply,
    };
    let done = download.run().await.inspect_err(|failure| {
        transport.iter().for_each(|server| failure.tell(server));
    })?;
    forward.consume(client, 0);
    let (group, server) = to;
    if let (Some(transport), Done::Reusable, Behind::Nobody) = (transport, done, behind)
        && forward.leaves_reusable(group)
    {
        let link = Exclusive { transport, input };
        link.give_back(group.server(server), client.worker.core.now());
    }
    Ok(())
}
