//! Paths of a run's datagrams: by the routing table, or over the named interfaces.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use onrush_engine::bind_to_interface;
use serde::Serialize;

use super::link::{Link, Route};
use super::plan::Options;
use crate::pace::error::Error;
use crate::plan::reach::unspecified;

/// An interface of a run, with its route to the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Path {
    pub(crate) link: Link,
    pub(crate) hop: Route,
    pub(crate) bound: Binding,
}

/// How a socket is bound to its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// The kernel sends and receives over this interface only (SO_BINDTOIFINDEX).
    Interface,
    /// The socket has the interface's address, and the routing table decides. Older kernels permit unprivileged users
    /// no more.
    Address,
}

impl Path {
    /// Finds the path to `target` over the interface with this name.
    ///
    /// # Errors
    /// There is no such interface, it is down, or it does not lead there.
    pub(crate) fn by(name: &str, target: IpAddr) -> Result<Path, Error> {
        let link = Link::named(name).map_err(Error::Invalid)?;
        let hop = link.hop(target).map_err(Error::Invalid)?;
        let tried = UdpSocket::bind((unspecified(target), 0))
            .and_then(|socket| bind_to_interface(&socket, link.index));
        let bound = match tried {
            Ok(()) => Binding::Interface,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Binding::Address,
            Err(error) => {
                return Err(Error::Invalid(format!(
                    "cannot bind sockets to --interface {name}: {error}"
                )));
            }
        };
        Ok(Path { link, hop, bound })
    }
}

/// Returns the address to bind a socket to: `source`, or the address of its path.
pub(crate) fn bind_address(source: Option<IpAddr>, path: Option<&Path>, target: IpAddr) -> IpAddr {
    let of_path = path
        .filter(|path| path.bound == Binding::Address)
        .map(|path| path.hop.source);
    source.or(of_path).unwrap_or(unspecified(target))
}

/// Returns the index of the interface to bind a socket to, if any.
pub(crate) fn bind_index(path: Option<&Path>) -> Option<u32> {
    path.filter(|path| path.bound == Binding::Interface)
        .map(|path| path.link.index)
}

/// Opens a socket for report requests to `target`, bound like that of flow `number`.
///
/// # Errors
/// A source address of another machine, or no route to the target.
pub(crate) fn report_socket(
    options: &Options,
    path: Option<&Path>,
    number: u64,
    target: SocketAddr,
) -> Result<UdpSocket, Error> {
    let source = options.sources.nth(number);
    let address = bind_address(source, path, target.ip());
    let socket = UdpSocket::bind((address, 0))
        .map_err(|error| Error::Invalid(format!("cannot use --source {address}: {error}")))?;
    let connected = match bind_index(path) {
        Some(index) => bind_to_interface(&socket, index),
        None => Ok(()),
    };
    let connected = connected.and_then(|()| socket.connect(target));
    connected
        .map_err(|error| Error::Invalid(format!("cannot send datagrams to {target}: {error}")))?;
    Ok(socket)
}
