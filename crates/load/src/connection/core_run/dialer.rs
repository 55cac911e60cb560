//! Establishes a core's connections over TCP or a Unix socket, with TLS if the target uses it, and opens its datagram
//! sockets.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{Address, Core, Datagram, Instant, Stream};
use onrush_tls::{Connector, Transport};

use crate::limits::{CONNECT_AHEAD, CONNECT_TIMEOUT};
use crate::pace::start_barrier::Signal;
use crate::pace::wall_clock::WallTime;
use crate::plan::reach::ConnectionSource;
use crate::plan::{Connecting, Plan};
use crate::protocol::failure::NotConnected;
use crate::record::{ConnectTime, Record};

pub(crate) struct Dialer {
    core: Core,
    plan: Arc<Plan>,
    way: ConnectionSource,
    timeout: Duration,
    /// Connections still to be established before the start, and the signal that there are none left.
    connecting_before_start: Cell<usize>,
    connected_before_start: Signal,
}

impl Dialer {
    pub(super) fn new(
        core: &Core,
        plan: &Arc<Plan>,
        connections: usize,
        address: Address,
    ) -> Dialer {
        let options = &plan.options;
        let is_before = options.connecting == Connecting::Before;
        Dialer {
            core: core.clone(),
            plan: Arc::clone(plan),
            way: ConnectionSource::new(plan, core.id(), address),
            timeout: options.timeout.min(CONNECT_TIMEOUT),
            connecting_before_start: Cell::new(if is_before { connections } else { 0 }),
            connected_before_start: Signal::default(),
        }
    }

    /// Waits until all connections to be made before the start are established or have failed.
    pub(crate) async fn connected_before_start(&self) {
        if self.connecting_before_start.get() > 0 {
            self.connected_before_start.wait().await;
        }
    }

    /// Connects before the start, if requested; `None` if not, or on failure.
    pub(crate) async fn connect_before(&self, record: &RefCell<Record>) -> Option<Transport> {
        let made = self.connect_ahead(record).await;
        self.ready();
        made
    }

    /// The same, but the start also waits for [`ready`](Self::ready).
    pub(crate) async fn connect_ahead(&self, record: &RefCell<Record>) -> Option<Transport> {
        if self.plan.options.connecting == Connecting::AtStart {
            return None;
        }
        if let Some(at) = self.plan.options.start_at {
            let left = at.since(WallTime::now());
            self.core.sleep(left.saturating_sub(CONNECT_AHEAD)).await;
        }
        match self.connect(record).await {
            Ok(stream) => Some(stream),
            Err(error) => {
                record.borrow_mut().connect_failed(&error);
                None
            }
        }
    }

    /// Marks one of the connections to be made before the start as ready.
    pub(crate) fn ready(&self) {
        if self.plan.options.connecting == Connecting::AtStart {
            return;
        }
        self.connecting_before_start
            .set(self.connecting_before_start.get() - 1);
        if self.connecting_before_start.get() == 0 {
            self.connected_before_start.set();
        }
    }

    pub(crate) fn open_datagrams(
        &self,
        record: &RefCell<Record>,
    ) -> Result<Datagram, NotConnected> {
        record.borrow_mut().tally.connections += 1;
        let socket = self.way.open_datagrams(&self.core)?;
        record.borrow_mut().opened();
        Ok(socket)
    }

    pub(crate) async fn connect(
        &self,
        record: &RefCell<Record>,
    ) -> Result<Transport, NotConnected> {
        record.borrow_mut().tally.connections += 1;
        let begin = self.core.now_exact();
        let deadline = begin + self.timeout;
        let stream = self.way.connect(&self.core, deadline).await?;
        let took = self.took_since(begin);
        let transport = match &self.plan.connector {
            None => Transport::plain(stream),
            // Boxed, since connections without TLS do not need it.
            Some(connector) => {
                Box::pin(self.handshake(record, stream, connector, deadline)).await?
            }
        };
        record.borrow_mut().connected(took);
        Ok(transport)
    }

    /// Returns how long an operation took that began at `begin` and has just completed. Its completion may have been
    /// noticed late, because of the previous turn and the work done in this one.
    fn took_since(&self, begin: Instant) -> ConnectTime {
        let now = self.core.now_exact();
        let all_ns = now.nanoseconds_since(begin);
        let late = self.core.lateness().as_nanos() as u64 + now.nanoseconds_since(self.core.now());
        ConnectTime {
            all_ns,
            own_ns: late.min(all_ns),
        }
    }

    async fn handshake(
        &self,
        record: &RefCell<Record>,
        stream: Stream,
        connector: &Connector,
        deadline: Instant,
    ) -> Result<Transport, NotConnected> {
        let begin = self.core.now_exact();
        let name = self.plan.options.target.name();
        let transport = Transport::connect(stream, connector, name, deadline).await?;
        let took = self.took_since(begin);
        if let Some(info) = transport.info() {
            record.borrow_mut().handshake_done(&info, took);
            if self.plan.protocol.is_http2() && info.protocol.as_deref() != Some(b"h2") {
                return Err(NotConnected::NoHttp2(info.protocol.clone()));
            }
        }
        Ok(transport)
    }
}
