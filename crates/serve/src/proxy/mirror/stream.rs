//! Mirrored requests over HTTP/2.

use onrush_config::plan::Multiplexing;
use onrush_http::HeaderSlots;
use onrush_http::http2::message;

use super::MirroredRequest;
use crate::limits::MIRROR_RESPONSE_BYTES_MAX;
use crate::proxy::failure::Failure;
use crate::proxy::group::NO_DEADLINE;
use crate::proxy::lease::Lease;
use crate::proxy::multiplexed::{Arrived, Body, Request, RequestTimeouts};

impl MirroredRequest {
    /// Sends the copy on a stream and reads the response, up to a limit.
    pub(super) async fn attempt_on_stream(&self, bounds: Multiplexing) -> Result<(), Failure> {
        let (core, timeouts) = (&self.worker.core, &self.group.timeouts);
        let request = Request {
            text: &self.request,
            method: self.method,
            sensitivity: self.sensitivity,
            body: match &self.payload[..] {
                [] => Body::None,
                payload => Body::Whole(payload.to_vec()),
            },
            patience: RequestTimeouts {
                settings: timeouts.connect,
                stream: timeouts.queue,
                response: timeouts.upstream_first_byte,
                until: NO_DEADLINE,
            },
        };
        let sent = core.now_exact();
        let to = (&self.group, self.reservation.index());
        let stream = Lease::stream(to, bounds, request, &self.worker);
        loop {
            let (fields, end) = stream.head().await?;
            let mut slots = HeaderSlots::new();
            let limits = &self.worker.limits;
            let head = message::response(&fields, &mut slots, self.method, end.into(), limits);
            let head = head.map_err(|rejection| Failure::BadResponse(rejection.into()))?;
            if head.status >= 200 {
                self.responded(head.status, sent);
                break;
            }
        }
        let mut seen = 0;
        loop {
            stream.set_deadline(core.now() + timeouts.upstream_body);
            let arrived = stream.data().await.map_err(Failure::into_cut)?;
            let (count, bytes) = stream.take(<[u8]>::len);
            stream.release(bytes);
            seen += count;
            // The rest is not needed.
            if arrived == Arrived::All || seen > MIRROR_RESPONSE_BYTES_MAX {
                return Ok(());
            }
        }
    }
}
