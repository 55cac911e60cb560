//! Sending a stretch of a file without reading it into memory: sendfile(2), which io_uring has no form of.

use std::task::Poll;

use rustix::fs::sendfile;
use rustix::io::Errno;

use crate::driver::Driver;
use crate::error::{Error, Kind, Op};
use crate::file::File;
use crate::limits::{BUFFER_BYTES, SENDFILE_BYTES};
use crate::outgoing::Part;
use crate::socket::key::Key;
use crate::socket::set_blocking;
use crate::state::State;
use crate::task::id::TaskId;

/// Which bytes to send; never none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl State {
    /// Sends some of the stretch and says how many bytes.
    pub(crate) fn poll_send_file(
        &mut self,
        key: Key,
        file: &File,
        stretch: Stretch,
        task: TaskId,
    ) -> Poll<Result<u64, Error>> {
        let sent = match self.driver {
            Driver::Epoll(_) => self.send_file_kernel(key, file, stretch),
            Driver::Uring(_) => self.send_file_ring(key, file, stretch),
            Driver::Simulated(_) => self.send_file_simulated(key, file, stretch),
        };
        self.finish_send(key, sent, Op::SendFile, task)
    }

    fn send_file_kernel(&mut self, key: Key, file: &File, stretch: Stretch) -> Result<u64, Error> {
        let socket = &mut self.sockets[key];
        if !socket.writable {
            return Err(Error::os(Op::SendFile, Errno::AGAIN));
        }
        let count = stretch.length.min(SENDFILE_BYTES as u64) as usize;
        let mut offset = stretch.offset;
        loop {
            match sendfile(
                socket.descriptor(),
                &file.descriptor,
                Some(&mut offset),
                count,
            ) {
                Ok(0) => return Err(Error::new(Op::SendFile, Kind::FileTooShort)),
                Ok(sent) => return Ok(sent as u64),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    socket.writable &= errno != Errno::AGAIN;
                    return Err(Error::os(Op::SendFile, errno));
                }
            }
        }
    }

    /// A ring's sockets are blocking (on others io_uring does not wait but fails), so the flag is set for the length of
    /// the transfer and writability is awaited by a poll of the ring.
    fn send_file_ring(&mut self, key: Key, file: &File, stretch: Stretch) -> Result<u64, Error> {
        let socket = &mut self.sockets[key];
        if let Some(errno) = socket.send_failed {
            return Err(Error::os(Op::SendFile, errno));
        }
        debug_assert!(!socket.ring.sending, "the head was sent before");
        if socket.ring.polling {
            return Err(Error::os(Op::SendFile, Errno::AGAIN));
        }
        socket.writable = true;
        set_blocking(socket.descriptor(), false).map_err(|errno| Error::os(Op::SendFile, errno))?;
        let sent = self.send_file_kernel(key, file, stretch);
        let State {
            driver: Driver::Uring(driver),
            sockets,
            ..
        } = self
        else {
            unreachable!("dispatched on it")
        };
        let socket = &mut sockets[key];
        set_blocking(socket.descriptor(), true).map_err(|errno| Error::os(Op::SendFile, errno))?;
        if sent == Err(Error::os(Op::SendFile, Errno::AGAIN)) {
            driver.poll_writable(key, socket);
        }
        sent
    }

    fn send_file_simulated(
        &mut self,
        key: Key,
        file: &File,
        stretch: Stretch,
    ) -> Result<u64, Error> {
        let mut buffer = self.pool.take()?;
        let count = stretch.length.min(BUFFER_BYTES as u64) as usize;
        match file.read(stretch.offset, &mut buffer.spare()[..count])? {
            0 => return Err(Error::new(Op::SendFile, Kind::FileTooShort)),
            count => buffer.fill(count),
        }
        let State {
            driver: Driver::Simulated(driver),
            sockets,
            ..
        } = self
        else {
            unreachable!("dispatched on it")
        };
        match driver.send(key, sockets, Part::Buffer(buffer).bytes()) {
            Ok(count) => Ok(count as u64),
            Err(errno) => Err(Error::os(Op::SendFile, errno)),
        }
    }
}
