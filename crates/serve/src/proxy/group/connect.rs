//! Connections to the servers of a group: TCP or Unix sockets, with a PROXY protocol header and TLS if configured.

use std::rc::Rc;

use onrush_config::plan::ProxyVersion;
use onrush_engine::{self as engine, Address, Errno, Error, Instant, Op, Stream};
use onrush_http::proxy_protocol::{self, Origin};
use onrush_tls::Transport;

use super::{Group, Server};
use crate::observe::registry::SeriesKind;
use crate::proxy::tls;
use crate::worker::Worker;

impl Group {
    /// Connects to a server on behalf of `origin`, by `until` and within the configured timeouts.
    ///
    /// # Errors
    /// Any error of connecting, and `EADDRNOTAVAIL` if the server has no address.
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

    /// [`Group::connect`] with a separate deadline `connected_by` for the connection itself.
    ///
    /// # Errors
    /// As [`Group::connect`].
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
            let traffic = worker.registry.traffic(SeriesKind::Group, &self.plan.name);
            let duration = worker.core.now().since(since);
            traffic.effort().has_connected(duration);
        }
        connected
    }

    /// Connects to `address` as to `server` by `connected_by`, and finishes the TLS handshake by `until`. A PROXY
    /// protocol header is sent together with the first bytes.
    ///
    /// # Errors
    /// Any error of connecting or of the TLS handshake.
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
            // The descriptor limit is reached: close idle connections, then try once more.
            Err(error) if error.is_out_of_descriptors() && worker.close_idle() => {
                Box::pin(Stream::connect(&worker.core, address, Some(connected_by))).await?
            }
            outcome => outcome?,
        };
        if let Some(version) = self.plan.proxy_protocol {
            stream.queue(proxy_header(version, origin));
        }
        match &self.connector {
            None => Ok(Transport::plain(stream)),
            // Boxed, so that the future is small for servers without TLS.
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

fn proxy_header(version: ProxyVersion, origin: &Origin<'_>) -> Rc<[u8]> {
    let mut room = [0; PROXY_HEADER_BYTES_MAX];
    let bytes = match version {
        ProxyVersion::V1 => proxy_protocol::write_v1(origin, &mut room),
        ProxyVersion::V2 => proxy_protocol::write_v2(origin, None, &mut room),
    };
    room[..bytes.expect("there is room for the longest")].into()
}

/// Version 2 with the paths of Unix sockets takes 232 bytes.
const PROXY_HEADER_BYTES_MAX: usize = 256;
