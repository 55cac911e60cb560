//! The message header of a vectored send, sendmsg(2).

use crate::buffers::outgoing::{Part, Queue};
use crate::limits::PARTS_PER_SEND;

/// Header and vector of sendmsg(2); in its box at a fixed address while the operation is in flight.
pub(crate) struct Message {
    header: libc::msghdr,
    vector: [libc::iovec; PARTS_PER_SEND],
}

impl Message {
    pub(crate) fn empty() -> Box<Message> {
        // SAFETY: msghdr and iovec are C structures of integers and pointers, for which all zeros is valid.
        Box::new(unsafe { std::mem::zeroed::<Message>() })
    }

    /// Points the vector at the first parts of `outgoing`, which it does not own, and returns the header, which is
    /// valid as long as the message stays in its box and does not change.
    pub(crate) fn fill(&mut self, outgoing: &Queue<Part>) -> *const libc::msghdr {
        let mut count = 0;
        for (slot, part) in self.vector.iter_mut().zip(outgoing.iter()) {
            let bytes = part.bytes();
            slot.iov_base = bytes.as_ptr().cast_mut().cast();
            slot.iov_len = bytes.len();
            count += 1;
        }
        self.header.msg_iov = self.vector.as_mut_ptr();
        self.header.msg_iovlen = count;
        &raw const self.header
    }
}
