//! A connection that speaks something else than HTTP: how it is counted, how long it is waited for, and how it ends. What is
//! said on it is another's.

use std::rc::Rc;

use onrush_engine::{Error, Input, Kind};
use onrush_tls::Transport;

use crate::ending::Behind;
use crate::limits::LINGER_BYTES;
use crate::observe::connections::{self, ConnectionState, note};
use crate::service::Service;
use crate::worker::Worker;

/// A client's connection. Dropping it closes it.
pub(crate) struct FarEnd {
    service: Rc<Service>,
    pub(crate) stream: Transport,
    pub(crate) input: Input,
}

/// What came of waiting for a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// So many bytes.
    Bytes(usize),
    /// It has ended its side.
    End,
    /// It has said nothing for too long, or the server ends, or needs the room for others.
    Nothing,
}

impl FarEnd {
    /// One that came by the listener with this number, and of which `input` has come already.
    pub(crate) fn begin(
        stream: Transport,
        input: Input,
        (listener, service): (u16, Rc<Service>),
    ) -> Self {
        service.worker.meter.connection_opens();
        connections::begin(&stream, listener, &service.worker);
        let far_end = Self {
            service,
            stream,
            input,
        };
        far_end.is_at(ConnectionState::Open);
        far_end
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.service.worker
    }

    /// Waits for more of the client's bytes, as long as a client of HTTP may be idle.
    pub(crate) async fn receive(&mut self) -> Result<Heard, Error> {
        let idle = self.service.site().settings.timeouts.client_idle;
        let deadline = self.worker().core.now() + idle;
        self.stream.set_deadline(Some(deadline));
        match self.stream.recv_unless_stopping(&mut self.input).await {
            Ok(0) => Ok(Heard::End),
            Ok(bytes) => Ok(Heard::Bytes(bytes)),
            Err(error) if matches!(error.kind, Kind::Stopping | Kind::TimedOut) => {
                Ok(Heard::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// How long the client may take nothing of what is sent.
    pub(crate) fn limit_send(&self) {
        let patience = self.service.site().settings.timeouts.client_send;
        self.stream.set_send_patience(patience);
    }

    /// Ends our side, so that all that was sent arrives, and reads on until the client ends its own, or has had enough time to.
    pub(crate) async fn end(mut self) -> Result<(), Error> {
        self.is_at(ConnectionState::Closing);
        self.worker().has_to_stop();
        self.limit_send();
        self.stream.shutdown().await?;
        if self.worker().crowd.is_short() {
            // Others wait for its descriptor.
            return Ok(());
        }
        let until = self.worker().linger_until(Behind::Nothing);
        self.stream.set_deadline(Some(until));
        let mut discarded = 0;
        while discarded < LINGER_BYTES {
            self.input.consume(self.input.bytes().len());
            match self.stream.recv(&mut self.input).await? {
                0 => return Ok(()),
                bytes => discarded += bytes,
            }
        }
        Ok(())
    }

    fn is_at(&self, state: ConnectionState) {
        self.stream.change_note(|note| note::at(note, state));
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        let worker = &self.service.worker;
        worker.meter.connection_closes();
        worker.identities.forget(self.stream.place());
    }
}
