//! How bytes that were just written get into a connection.

use std::rc::Rc;

use onrush_engine::Part;
use onrush_tls::Transport;

/// Queues `bytes` in buffers of the core: as a rule one. Where none is free, in memory of their own.
pub(crate) fn queue_bytes(stream: &Transport, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let Ok(mut buffer) = stream.core().buffer() else {
            stream.queue(Part::Shared(Rc::from(bytes), 0));
            return;
        };
        let count = buffer.put_some(bytes);
        stream.queue(buffer);
        bytes = &bytes[count..];
    }
}
