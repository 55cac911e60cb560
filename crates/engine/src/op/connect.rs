//! Connecting to a peer. Both kernel drivers start it without blocking and wait for writability.

use std::os::fd::OwnedFd;
use std::task::Poll;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::address::Address;
use crate::core::State;
use crate::driver::Driver;
use crate::error::{Error, Op};
use crate::socket::{Key, Socket};
use crate::task::TaskId;

impl State {
    /// A socket that is connecting; [`State::poll_connect`] says when it is done.
    pub(crate) fn connect(&mut self, address: &Address) -> Result<Key, Error> {
        if let Driver::Simulated(driver) = &mut self.driver {
            return driver
                .connect(address, &mut self.sockets)
                .map_err(|errno| Error::os(Op::Connect, errno));
        }
        let descriptor = start(address).map_err(|errno| Error::os(Op::Connect, errno))?;
        let key = self.sockets.insert(Socket::new(Some(descriptor)));
        let registered = match &mut self.driver {
            Driver::Epoll(driver) => driver.register(self.sockets[key].descriptor(), key),
            Driver::Uring(driver) => {
                driver.poll_writable(key, &mut self.sockets[key]);
                Ok(())
            }
            Driver::Simulated(_) => unreachable!("returned above"),
        };
        match registered {
            Ok(()) => Ok(key),
            Err(errno) => {
                self.sockets.remove(key);
                Err(Error::os(Op::Connect, errno))
            }
        }
    }

    pub(crate) fn poll_connect(&mut self, key: Key, task: TaskId) -> Poll<Result<(), Error>> {
        let outcome = self
            .connect_outcome(key)
            .map_err(|errno| Error::os(Op::Connect, errno));
        self.finish_send(key, outcome, Op::Connect, task)
    }

    fn connect_outcome(&mut self, key: Key) -> Result<(), Errno> {
        let socket = &mut self.sockets[key];
        if !socket.writable {
            return Err(Errno::AGAIN);
        }
        match self.driver {
            Driver::Simulated(_) => Ok(()),
            Driver::Epoll(_) => socket_error(socket.descriptor())?,
            Driver::Uring(_) => {
                socket_error(socket.descriptor())??;
                // io_uring waits only on blocking sockets.
                let flags = fcntl_getfl(socket.descriptor())? - OFlags::NONBLOCK;
                fcntl_setfl(socket.descriptor(), flags)
            }
        }
    }
}

fn start(address: &Address) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let family = match address {
        Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        Address::Tcp(_) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    };
    let descriptor = socket_with(family, SocketType::STREAM, flags, None)?;
    let started = match address {
        Address::Tcp(address) => {
            // Requests are sent whole; waiting for an acknowledgement to fill a packet (Nagle) only delays them.
            set_tcp_nodelay(&descriptor, true)?;
            connect(&descriptor, address)
        }
        Address::Unix(path) => connect(&descriptor, &SocketAddrUnix::new(path)?),
    };
    match started {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(descriptor),
        // unix(7): the listener's queue is full. To the caller that is a refusal, not "wait": no event would follow.
        Err(Errno::AGAIN) => Err(Errno::CONNREFUSED),
        Err(errno) => Err(errno),
    }
}
