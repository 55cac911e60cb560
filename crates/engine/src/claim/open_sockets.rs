//! Opening the sockets of a claim.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_ipv6_v6only, set_socket_reuseaddr, set_socket_reuseport, set_tcp_nodelay,
};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, getsockname, listen, socket_with,
};

use crate::address::Address;
use crate::limits::{LISTEN_BACKLOG, UNSENT_MIN};
use crate::socket::option::set_option;

/// Binds a TCP socket that does not listen to `address`, and returns the address with the actual port.
pub(super) fn claim_tcp(address: &Address) -> Result<(Address, OwnedFd), Errno> {
    let socket = tcp_socket(address, Sharing::Alone)?;
    // Set after bind, which failed if the address was in use; the cores' sockets may now join.
    set_socket_reuseport(&socket, true)?;
    let bound = SocketAddr::try_from(getsockname(&socket)?);
    let bound = bound.map_err(|_| Errno::AFNOSUPPORT)?;
    Ok((Address::Tcp(bound), socket))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sharing {
    Alone,
    /// Other cores (SO_REUSEPORT).
    Cores,
}

fn tcp_socket(address: &Address, sharing: Sharing) -> Result<OwnedFd, Errno> {
    let Address::Tcp(address) = address else {
        unreachable!("the caller has matched it")
    };
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    if sharing == Sharing::Cores {
        set_socket_reuseport(&socket, true)?;
    }
    if address.is_ipv6() {
        // As nginx does: "[::]:80" and "0.0.0.0:80" are separate addresses and can both be listened on.
        set_ipv6_v6only(&socket, true)?;
    }
    set_inherited_options(&socket)?;
    bind(&socket, address)?;
    Ok(socket)
}

/// Sets the options that accepted connections inherit (tcp(7)). No Nagle delay, because responses are sent whole.
pub(super) fn set_inherited_options(listener: &OwnedFd) -> Result<(), Errno> {
    set_tcp_nodelay(listener, true)?;
    set_option(
        listener,
        libc::IPPROTO_TCP,
        libc::TCP_NOTSENT_LOWAT,
        UNSENT_MIN.cast_signed(),
    )
}

/// Listens on a Unix socket at `path`; the file of a crashed process is replaced.
pub(super) fn claim_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    match bind(&socket, &address) {
        // A file without a listener was left by a crash.
        Err(Errno::ADDRINUSE) if is_abandoned(path, &address) => {
            fs::remove_file(path)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::ADDRINUSE))?;
            bind(&socket, &address)?;
        }
        outcome => outcome?,
    }
    listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket)
}

fn is_abandoned(path: &Path, address: &SocketAddrUnix) -> bool {
    // connect(2) also fails for a file of another kind, which must not be removed.
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if !is_socket {
        return false;
    }
    let probe = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    );
    probe.is_ok_and(|probe| rustix::net::connect(&probe, address) == Err(Errno::CONNREFUSED))
}

pub(super) fn listening(address: &Address) -> Result<OwnedFd, Errno> {
    let socket = tcp_socket(address, Sharing::Cores)?;
    listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket)
}
