//! Sending a range of a file without reading it into memory: sendfile(2), for which io_uring has no operation.
//!
//! It returns after each call with the number of bytes, not after the whole file: a slow reader of a large file must
//! not time out while it makes progress, and a fast one must not occupy the core.

use std::task::Poll;

use crate::driver::operations::{FileRange, NextData, Operations};
use crate::error::{Error, Op};
use crate::file::File;
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// Whether a file part of this length is sent in the same packets as its head.
    pub(crate) fn follows(&self, length: u64) -> NextData {
        match length <= self.sockets.joined_max {
            true => NextData::SamePacket,
            false => NextData::SeparatePacket,
        }
    }

    pub(crate) fn poll_send_file(
        &mut self,
        key: Key,
        file: &File,
        stretch: FileRange,
        task: TaskId,
    ) -> Poll<Result<u64, Error>> {
        let sent = self
            .driver
            .send_file(key, file, stretch, &mut self.sockets, &self.pool);
        match sent {
            Ok(count) => self.sockets[key].note_taken(count, self.now),
            Err(_) => self.sockets.note_wait(key, self.now),
        }
        self.finish_send(key, sent, Op::SendFile, task)
    }
}
