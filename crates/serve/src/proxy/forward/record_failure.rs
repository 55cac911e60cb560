//! Log and record of a failed forwarded request.

use crate::observe::record::Record;
use crate::proxy::failure::Failure;
use crate::worker::Worker;

/// Updates the log and the record. Errors of the client are not logged as failures of the server.
pub(super) fn account(
    worker: &Worker,
    record: &Record,
    name: &str,
    status: Option<u16>,
    failure: Failure,
) {
    match failure {
        // A body that is too large is still a valid request.
        Failure::BadRequest(refusal) if refusal.status == 413 => return,
        Failure::BadRequest(_) => return record.refuse(),
        // The server did respond.
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
