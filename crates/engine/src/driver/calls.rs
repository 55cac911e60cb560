//! Non-blocking system calls on a socket that both kernel drivers make.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, accept_with, getsockname,
    recv, send, sendmsg, shutdown,
};

use super::operations::{FileRange, NextData};
use crate::buffers::buffer::Pool;
use crate::buffers::input::Input;
use crate::buffers::outgoing::{Part, Queue};
use crate::clock::Instant;
use crate::error::{Error, Kind, Op};
use crate::file::File;
use crate::file::pipe::Pipe;
use crate::limits::{DROP_BYTES, PARTS_PER_SEND, RECEIVES_PER_DIRECT_POLL, SENDFILE_BYTES};
use crate::socket::batch::{ReceiveBatch, SendBatch, Sending};
use crate::socket::key::Key;
use crate::socket::{BlockingMode, Ended, Socket, Sockets, set_blocking_mode};

/// Whether a connection is waiting to be accepted.
pub(super) fn is_waited_for(listener: &Socket) -> bool {
    let mut descriptors = [PollFd::new(listener.descriptor(), PollFlags::IN)];
    // EINTR counts as "no connection".
    poll(&mut descriptors, Some(&Timespec::default())) == Ok(1)
}

pub(super) fn accept(listener: &Socket, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    loop {
        match accept_with(listener.descriptor(), flags | SocketFlags::CLOEXEC) {
            // The connection was gone before it was accepted (accept(2)).
            Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
            outcome => return outcome,
        }
    }
}

/// Adds a connected descriptor to the core's sockets.
pub(super) fn adopt(descriptor: OwnedFd, sockets: &mut Sockets) -> Key {
    let mut socket = Socket::new(Some(descriptor));
    // Read at once: a client that connects has nearly always sent its first request already.
    socket.readable = true;
    socket.writable = true;
    sockets.insert(socket)
}

pub(super) fn receive(
    socket: &mut Socket,
    input: &mut Input,
    pool: &Rc<Pool>,
) -> Result<usize, Error> {
    let buffer = match socket.bulk {
        0 => input.buffer_with_room(pool)?,
        _ => input.buffer_for_bulk(pool)?,
    };
    let room = buffer.room();
    let mut tries = tries(socket);
    loop {
        // DONTWAIT: a ring's sockets are blocking.
        match recv(socket.descriptor(), buffer.spare(), RecvFlags::DONTWAIT) {
            Ok((_, count)) => {
                // A short receive has emptied the socket, and the next edge is still to come. Not so before the end of
                // the stream or an urgent byte, whose edge may have been reported together with that of the bytes.
                socket.readable = count == room || socket.ended != Ended::No || socket.urgent;
                buffer.fill(count);
                socket.note_length(buffer.len());
                return Ok(count);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if tries > 1 => tries -= 1,
            Err(errno) => {
                socket.readable = errno != Errno::AGAIN;
                return Err(Error::os(Op::Recv, errno));
            }
        }
    }
}

/// Number of attempts of a receive when no bytes have arrived.
fn tries(socket: &mut Socket) -> usize {
    match std::mem::take(&mut socket.is_direct_receive) {
        true => RECEIVES_PER_DIRECT_POLL,
        false => 1,
    }
}

/// Sends as much as the socket takes; EAGAIN if bytes are left.
pub(super) fn flush(socket: &mut Socket, follows: NextData, now: Instant) -> Result<(), Error> {
    // DONTWAIT: a ring's sockets are blocking.
    let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if follows == NextData::SamePacket {
        flags |= SendFlags::MORE;
    }
    while !socket.outgoing.is_empty() {
        if !socket.writable {
            return Err(Error::os(Op::Send, Errno::AGAIN));
        }
        match send_parts(
            &socket.outgoing,
            |bytes| send(socket.descriptor(), bytes, flags),
            |vector| {
                sendmsg(
                    socket.descriptor(),
                    vector,
                    &mut SendAncillaryBuffer::default(),
                    flags,
                )
            },
        ) {
            Ok(count) => {
                socket.outgoing.consume(count);
                socket.note_taken(count as u64, now);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => socket.writable = false,
            Err(errno) => {
                socket.outgoing.clear();
                return Err(Error::os(Op::Send, errno));
            }
        }
    }
    Ok(())
}

/// Sends one part by send(2), several by sendmsg(2): the vector costs the kernel a copy and a walk.
fn send_parts(
    outgoing: &Queue<Part>,
    one: impl FnOnce(&[u8]) -> Result<usize, Errno>,
    several: impl FnOnce(&[IoSlice<'_>]) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    if outgoing.len() == 1 {
        let part = outgoing.iter().next().expect("there is one");
        return one(part.bytes());
    }
    let mut vector = [IoSlice::new(&[]); PARTS_PER_SEND];
    let mut count = 0;
    for (slot, part) in vector.iter_mut().zip(outgoing.iter()) {
        *slot = IoSlice::new(part.bytes());
        count += 1;
    }
    several(&vector[..count])
}

pub(super) fn send_file(
    socket: &mut Socket,
    file: &File,
    stretch: FileRange,
) -> Result<u64, Error> {
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

/// Discards at most `max` bytes that have arrived (tcp(7), MSG_TRUNC).
pub(super) fn drop_arrived(socket: &mut Socket, max: u64) -> Result<usize, Errno> {
    if !socket.readable {
        return Err(Errno::AGAIN);
    }
    let max = max.min(DROP_BYTES) as usize;
    loop {
        match recv_truncated(socket.descriptor(), max) {
            Err(Errno::INTR) => {}
            Ok(count) => {
                // As in `receive`.
                socket.readable = count == max || socket.ended != Ended::No || socket.urgent;
                return Ok(count);
            }
            Err(errno) => {
                socket.readable = errno != Errno::AGAIN;
                return Err(errno);
            }
        }
    }
}

fn recv_truncated(descriptor: &OwnedFd, max: usize) -> Result<usize, Errno> {
    // DONTWAIT: a ring's sockets are blocking.
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with MSG_TRUNC a TCP socket, as of all callers, writes no byte to the memory; a write would fault.
    let count = unsafe { libc::recv(descriptor.as_raw_fd(), std::ptr::null_mut(), max, flags) };
    usize::try_from(count)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// A short count does not mean an empty socket: a pipe has room for a number of packets, not of bytes.
pub(super) fn fill(socket: &mut Socket, pipe: &mut Pipe, max: u64) -> Result<usize, Errno> {
    if !socket.readable {
        return Err(Errno::AGAIN);
    }
    loop {
        match pipe.fill(socket.descriptor(), max) {
            Err(Errno::INTR) => {}
            filled => {
                socket.readable = filled != Err(Errno::AGAIN);
                return filled;
            }
        }
    }
}

pub(super) fn drain(socket: &mut Socket, pipe: &mut Pipe, now: Instant) -> Result<(), Errno> {
    while pipe.held() > 0 {
        if !socket.writable {
            return Err(Errno::AGAIN);
        }
        match pipe.drain(socket.descriptor()) {
            Ok(count) => socket.note_taken(count as u64, now),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => socket.writable = false,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Makes a call that does not block on a socket of a ring. These sockets are blocking, since io_uring fails on others
/// instead of waiting, so the flag is set for the duration of the call.
pub(super) fn with_nonblocking<T>(
    socket: &mut Socket,
    call: impl FnOnce(&mut Socket) -> Result<T, Errno>,
) -> Result<T, Errno> {
    set_blocking_mode(socket.descriptor(), BlockingMode::Fail)?;
    let outcome = call(socket);
    set_blocking_mode(socket.descriptor(), BlockingMode::Wait)?;
    outcome
}

/// Whether the kernel holds bytes, an end or an error for a socket without a receive in progress: bulk is received only
/// on request, and back-pressure may have cancelled a multishot receive that a finished response did not arm again.
pub(super) fn has_arrived(socket: &Socket) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(socket.descriptor(), &mut [0u8; 1][..], flags).err() != Some(Errno::AGAIN)
}

pub(super) fn is_urgent(socket: &Socket) -> bool {
    let mut descriptors = [PollFd::new(socket.descriptor(), PollFlags::PRI)];
    poll(&mut descriptors, Some(&Timespec::default())) == Ok(1)
}

pub(super) fn end(socket: &Socket) -> Result<(), Errno> {
    shutdown(socket.descriptor(), Shutdown::Write)
}

pub(super) fn reset_at_close(socket: &Socket) {
    // It cannot fail for a socket; if it did, the close would be an ordinary one.
    let _ = set_socket_linger(socket.descriptor(), Some(Duration::ZERO));
}

pub(super) fn bind(
    open: impl FnOnce() -> Result<OwnedFd, Errno>,
    sockets: &mut Sockets,
) -> Result<(Key, SocketAddr), Errno> {
    let descriptor = open()?;
    let bound = local(&descriptor)?;
    let mut socket = Socket::new(Some(descriptor));
    socket.readable = true;
    socket.writable = true;
    Ok((sockets.insert(socket), bound))
}

pub(super) fn connect(socket: &Socket, peer: SocketAddr) -> Result<SocketAddr, Errno> {
    rustix::net::connect(socket.descriptor(), &peer)?;
    local(socket.descriptor())
}

fn local(descriptor: &OwnedFd) -> Result<SocketAddr, Errno> {
    SocketAddr::try_from(getsockname(descriptor)?).map_err(|_| Errno::AFNOSUPPORT)
}

pub(super) fn send_datagrams(
    socket: &mut Socket,
    batch: &mut SendBatch,
    sending: Sending,
) -> Result<usize, Errno> {
    if !socket.writable {
        return Err(Errno::AGAIN);
    }
    let sent = batch.send(socket.descriptor(), sending);
    socket.writable = sent != Err(Errno::AGAIN);
    sent
}

pub(super) fn recv_datagrams(
    socket: &mut Socket,
    batch: &mut ReceiveBatch,
) -> Result<usize, Errno> {
    if !socket.readable {
        return Err(Errno::AGAIN);
    }
    let received = match tries(socket) {
        1 => batch.recv(socket.descriptor()),
        tries => batch.recv_one(socket.descriptor(), socket.receive_extras, tries),
    };
    match received {
        // Fewer messages than there was room for have emptied the socket, and the next edge is still to come. Not so if
        // an error was reported, which may follow them: its edge may have been reported together with theirs.
        Ok(_) => socket.readable = !batch.had_room() || socket.ended != Ended::No,
        Err(errno) => {
            socket.readable = errno != Errno::AGAIN;
            // The reported error has been consumed, by this call or by a send.
            socket.ended = Ended::No;
        }
    }
    received
}
