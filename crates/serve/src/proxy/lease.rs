//! What carries a request to a server: a place on a pipelined connection.

use std::rc::Rc;

use onrush_engine::{Buffer, Error, Instant};
use onrush_http::proxy_protocol::Origin;
use onrush_http::request::RequestHead;

use super::failure::Failure;
use super::group::{FOREVER, Group};
use super::pipelined::carrier::carry;
use super::pipelined::{Pipelined, Submission, fits};
use crate::worker::Worker;

/// Sends a request with others on a pipelined connection to a server, where its group has those and the request may share one.
/// `write` renders its head, as [`Pipelined::submit`] says. The whole exchange has to be over at `until`.
///
/// # Errors
/// When the core is out of buffers.
pub(crate) fn submit(
    (group, server): (&Rc<Group>, u32),
    head: &RequestHead<'_, '_>,
    until: Instant,
    worker: &Worker,
    write: impl Fn(&mut Buffer) -> bool,
) -> Result<Option<Submission>, Error> {
    let Some(depth) = group.plan.pipeline.filter(|_| fits(head)) else {
        return Ok(None);
    };
    let set = &group.server(server).pipelined;
    let connection = set.with_room(depth.get()).unwrap_or_else(|| {
        let connection = set.add(group.timeouts);
        let carried = run(
            Rc::clone(&connection),
            Rc::clone(group),
            server,
            worker.myself(),
        );
        worker.spawn_aside(carried);
        connection
    });
    let submitted = connection.submit(head.method, until, worker, write)?;
    Ok(Some(submitted))
}

/// The task of a pipelined connection, from connecting to its end.
async fn run(connection: Rc<Pipelined>, group: Rc<Group>, server: u32, worker: Rc<Worker>) {
    let server = Rc::clone(&group.servers()[server as usize]);
    let until = connection.oldest_until().unwrap_or(FOREVER);
    let connected = group.connect(&server, &Origin::Local, &worker, until).await;
    // It may outlive its group's configuration by as long as there are requests.
    drop(group);
    match connected {
        Ok(transport) => carry(&connection, transport, &worker).await,
        Err(error) => connection.fail(Failure::Connect(error)),
    }
    server.pipelined.remove(&connection);
}
