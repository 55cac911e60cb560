//! One request to a server and its answer back.

use onrush_engine::Error;
use onrush_http::request::RequestHead;

use crate::connection::Connection;

/// A request that goes to a server.
pub(crate) struct Forward {
    _group: usize,
}

impl Forward {
    pub(crate) fn new(group: usize, _head: &RequestHead<'_, '_>) -> Self {
        Self { _group: group }
    }
}

pub(crate) async fn exchange(_forward: Forward, _connection: &mut Connection) -> Result<(), Error> {
    Ok(())
}
