//! Start of an attempt.

use std::rc::Rc;

use super::request::Forward;
use crate::exchange::downstream::Downstream;
use crate::exchange::downstream::request_body::RequestBody;
use crate::exchange::reply::Reply;
use crate::proxy::attempt::Attempt;
use crate::proxy::group::Group;
use crate::proxy::progress::Progress;

/// Creates the parts of an attempt at the server `to`: its state, the request body to read, and the reply to write.
pub(super) fn start_attempt<'a>(
    forward: &'a Forward,
    client: &'a mut Downstream<'_>,
    (group, server): (&'a Rc<Group>, u32),
    progress: &'a Progress,
) -> (Attempt<'a>, RequestBody<'a>, Reply<'a>) {
    let worker = client.worker;
    let (body, reply) = client.split(forward.method);
    let attempt = Attempt {
        forward,
        group,
        server,
        exchange: reply.exchange,
        worker,
        progress,
    };
    (attempt, body, reply)
}
