//! What is told of a forwarded request that failed.

use crate::observe::record::Record;
use crate::proxy::failure::Failure;
use crate::worker::Worker;

/// Tells the log and the record; what the client did wrong is no news of the server.
pub(super) fn account(
    worker: &Worker,
    record: &Record,
    name: &str,
    status: Option<u16>,
    failure: Failure,
) {
    match failure {
        // Who sends too much has sent a request all the same.
        Failure::BadRequest(refusal) if refusal.status == 413 => return,
        Failure::BadRequest(_) => return record.refuse(),
        // It did respond.
        Failure::Intercepted(_) => return,
        _ => {}
    }
    record.fail(failure.class());
    match status {
        Some(status) => worker.log.failure(
            &worker.core,
            format_args!("server {name}: {failure}; the client got {status}"),
        ),
        None => worker.log.failure(
            &worker.core,
            format_args!("server {name}: {failure}; the client was cut off"),
        ),
    }
}
