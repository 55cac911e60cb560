//! Connections to the servers of a group: TCP or Unix sockets, what says whom they are for, and TLS where its servers speak it.

use std::rc::Rc;

use onrush_config::plan::ProxyVersion;
use onrush_engine::{self as engine, Address, Errno, Error, Instant, Op, Stream};
use onrush_http::proxy_protocol::{self, Origin};
use onrush_tls::Transport;

use super::{Group, Server};
use crate::observe::registry::Kind;
use crate::proxy::tls;
use crate::worker::Worker;

impl Group {
    /// Connects to a server on behalf of `origin`, by `until` and as fast as the configuration asks.
    ///
    /// # Errors
    /// As those of connecting; and when the server's name has lost its address.
    pub(crate) fn connect(
        &self,
        server: &Server,
        origin: &Origin<'_>,
        worker: &Worker,
        until: Instant,
    ) -> impl Future<Output = Result<Transport, Error>> {
        let connected_by = until.min(worker.core.now_exact() + self.timeouts.connect);
        self.connect_by(server, origin, worker, (connected_by, until))
    }

    /// The same, with a connection by `connected_by`.
    ///
    /// # Errors
    /// As those of [`Group::connect`].
    pub(crate) async fn connect_by(
        &self,
        server: &Server,
        origin: &Origin<'_>,
        worker: &Worker,
        (connected_by, until): (Instant, Instant),
    ) -> Result<Transport, Error> {
        let Some(address) = server.address() else {
            return Err(Error::new(
                Op::Connect,
                engine::Kind::Os(Errno::ADDRNOTAVAIL),
            ));
        };
        let since = worker.core.now();
        let connected = self
            .connect_to(&address, server, origin, worker, connected_by, until)
            .await;
        if connected.is_ok() {
            let traffic = worker.registry.traffic(Kind::Group, &self.plan.name);
            let duration = worker.core.now().since(since);
            traffic.effort().has_connected(duration);
        }
        connected
    }

    /// Connects to an address as to `server`, by `connected_by`, and finishes all that precedes the first
    /// request by `until`. Where the PROXY protocol is spoken, what says whom it is for leaves with the first bytes that
    /// are sent.
    ///
    /// # Errors
    /// As those of connecting.
    pub(crate) async fn connect_to(
        &self,
        address: &Address,
        server: &Server,
        origin: &Origin<'_>,
        worker: &Worker,
        connected_by: Instant,
        until: Instant,
    ) -> Result<Transport, Error> {
        let stream = match Stream::connect(&worker.core, address, Some(connected_by)).await {
            // More descriptors are in use than are set aside for connections: idle ones are closed.
            Err(error) if error.is_out_of_descriptors() && worker.give_up_kept() => {
                Box::pin(Stream::connect(&worker.core, address, Some(connected_by))).await?
            }
            outcome => outcome?,
        };
        if let Some(version) = self.plan.proxy_protocol {
            stream.queue(introduction(version, origin));
        }
        match &self.connector {
            None => Ok(Transport::plain(stream)),
            // Boxed: requests to servers without TLS need not have room for it.
            Some(connector) => {
                let deadline = until.min(worker.core.now_exact() + self.timeouts.tls_handshake);
                Box::pin(tls::connect(
                    stream,
                    connector,
                    &server.host,
                    deadline,
                    worker,
                ))
                .await
            }
        }
    }
}

/// A header of the PROXY protocol.
fn introduction(version: ProxyVersion, origin: &Origin<'_>) -> Rc<[u8]> {
    let mut room = [0; INTRODUCTION_BYTES_MAX];
    let bytes = match version {
        ProxyVersion::V1 => proxy_protocol::write_v1(origin, &mut room),
        ProxyVersion::V2 => proxy_protocol::write_v2(origin, None, &mut room),
    };
    room[..bytes.expect("there is room for the longest")].into()
}

/// The longest header that we write: version 2 with the paths of Unix sockets has 232 bytes.
const INTRODUCTION_BYTES_MAX: usize = 256;
