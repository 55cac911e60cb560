//! A client's connection to a load target: timeouts, counters and closing.

use std::rc::Rc;

use onrush_engine::{Error, Input, Kind};
use onrush_load_targets::{Client, Received};
use onrush_tls::Transport;

use crate::connection::ending::LastEvent;
use crate::limits::LINGER_BYTES;
use crate::site::service::Service;
use crate::worker::Worker;
use crate::worker::connections::{self, ConnectionState, note};

pub(crate) struct TargetClient {
    service: Rc<Service>,
    stream: Transport,
    input: Input,
}

impl TargetClient {
    /// Starts serving a connection that `listener` accepted; `input` has already been received.
    pub(crate) fn begin(
        stream: Transport,
        input: Input,
        (listener, service): (u16, Rc<Service>),
    ) -> Self {
        service.worker.meter.connection_opens();
        connections::begin(&stream, listener, &service.worker);
        let client = Self {
            service,
            stream,
            input,
        };
        client.set_state(ConnectionState::Open);
        client
    }

    fn worker(&self) -> &Worker {
        &self.service.worker
    }

    fn set_state(&self, state: ConnectionState) {
        self.stream
            .change_note(|note| note::with_state(note, state));
    }
}

impl Client for TargetClient {
    fn stream(&self) -> &Transport {
        &self.stream
    }

    fn parts(&mut self) -> (&Transport, &mut Input) {
        (&self.stream, &mut self.input)
    }

    async fn receive(&mut self) -> Result<Received, Error> {
        let idle = self.service.site().settings.timeouts.client_idle;
        let deadline = self.worker().core.now() + idle;
        self.stream.set_deadline(Some(deadline));
        match self.stream.recv_unless_stopping(&mut self.input).await {
            Ok(0) => Ok(Received::End),
            Ok(_) => Ok(Received::Bytes),
            Err(error) if matches!(error.kind, Kind::Stopping | Kind::TimedOut) => {
                Ok(Received::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    fn limit_send(&self) {
        let patience = self.service.site().settings.timeouts.client_send;
        self.stream.set_send_patience(patience);
    }

    async fn end(mut self) -> Result<(), Error> {
        self.set_state(ConnectionState::Closing);
        self.worker().check_stop();
        self.limit_send();
        self.stream.shutdown().await?;
        if self.worker().connection_budget.is_short() {
            // Other connections need the descriptor.
            return Ok(());
        }
        let until = self.worker().linger_until(LastEvent::Nothing);
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
}

impl Drop for TargetClient {
    fn drop(&mut self) {
        let worker = &self.service.worker;
        worker.meter.connection_closes();
        worker.identities.forget(self.stream.place());
    }
}
