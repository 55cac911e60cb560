//! TLS towards clients and servers: from the plan to what shakes hands, and from a connection to one that speaks HTTP.

use std::rc::Rc;
use std::sync::Arc;

use onrush_config::Plan;
use onrush_config::plan::{self, Certificate, ClientCertificates, Tls, TlsProfile, UpstreamTls};
use onrush_engine::{Error, Input, Instant, Kind, Op, Stream};
use onrush_tls::{
    Acceptor, ClientSetup, Clients, Connector, HandshakeError, Identity, Profile, Reloaded,
    ServerSetup, Transport, Trouble, Verify, Watch, Watched,
};

use crate::client::Client;
use crate::connection;
use crate::worker::Worker;

/// What the addresses and the groups of a plan speak TLS with, in their order; `None` where they do not.
#[derive(Default)]
pub(crate) struct Encryption {
    pub(crate) acceptors: Vec<Option<Arc<Acceptor>>>,
    pub(crate) connectors: Vec<Option<Arc<Connector>>>,
}

impl Encryption {
    /// Reads all certificates of a plan. Where they cannot be used there is nothing; what is wrong with them goes to
    /// `wrong`.
    pub(crate) fn of(plan: &Plan, warnings: &mut Vec<String>, wrong: &mut Vec<String>) -> Self {
        let acceptors = plan.listen.iter().map(|listen| {
            let tls = listen.tls.as_ref()?;
            keep(Acceptor::new(server_setup(tls)), warnings, wrong)
        });
        let acceptors = acceptors.collect();
        let connectors = plan.upstreams.iter().map(|upstream| {
            let tls = upstream.tls.as_ref()?;
            keep(Connector::new(client_setup(tls)), warnings, wrong)
        });
        Self {
            acceptors,
            connectors: connectors.collect(),
        }
    }

    /// Follows changes of the files.
    pub(crate) fn watch(&self) -> Option<Watch> {
        let acceptors = self.acceptors.iter().flatten().cloned();
        let connectors = self.connectors.iter().flatten().cloned();
        let watched = acceptors
            .map(Watched::Acceptor)
            .chain(connectors.map(Watched::Connector));
        Watch::start(watched.collect(), |reloaded| match reloaded {
            Reloaded::Taken(warnings) => {
                tracing::info!("certificates have changed; new connections get the new ones");
                for warning in &warnings {
                    tracing::warn!("{warning}");
                }
            }
            Reloaded::Refused(wrong) => {
                for trouble in wrong {
                    tracing::warn!(
                        "certificates have changed and cannot be used; the old ones stay: {trouble}"
                    );
                }
            }
        })
    }
}

fn keep<T>(
    made: Result<(T, Vec<Trouble>), Vec<Trouble>>,
    warnings: &mut Vec<String>,
    wrong: &mut Vec<String>,
) -> Option<Arc<T>> {
    let lines = |troubles: Vec<Trouble>| troubles.into_iter().map(|trouble| trouble.to_string());
    match made {
        Ok((made, said)) => {
            warnings.extend(lines(said));
            Some(Arc::new(made))
        }
        Err(troubles) => {
            wrong.extend(lines(troubles));
            None
        }
    }
}

fn server_setup(tls: &Tls) -> ServerSetup {
    let identity = |certificate: &Certificate| match certificate {
        Certificate::SelfSigned => Identity::SelfSigned,
        Certificate::Files { certificate, key } => Identity::Files {
            certificate: certificate.clone(),
            key: key.clone(),
        },
    };
    ServerSetup {
        certificates: tls.certificates.iter().map(identity).collect(),
        profile: match tls.profile {
            TlsProfile::Modern => Profile::Modern,
            TlsProfile::Intermediate => Profile::Intermediate,
        },
        clients: match &tls.clients {
            ClientCertificates::Ignored => Clients::Ignored,
            ClientCertificates::Optional(file) => Clients::Optional(file.clone()),
            ClientCertificates::Required(file) => Clients::Required(file.clone()),
        },
        protocols: vec!["http/1.1"],
    }
}

fn client_setup(tls: &UpstreamTls) -> ClientSetup {
    ClientSetup {
        verify: match &tls.verify {
            plan::Verify::System => Verify::System,
            plan::Verify::File(file) => Verify::File(file.clone()),
            plan::Verify::Nothing => Verify::Nothing,
        },
        name: tls.name.clone(),
        certificate: tls.certificate.clone(),
        ..ClientSetup::default()
    }
}

/// Shakes hands with a client, of whom `received` has come already, and serves it.
pub(crate) async fn serve(
    stream: Stream,
    received: Input,
    acceptor: Arc<Acceptor>,
    client: Client,
    worker: Rc<Worker>,
) {
    let deadline = worker.core.now() + worker.timeouts.tls_handshake;
    let accepted = Transport::accept(stream, received, &acceptor, deadline).await;
    drop(acceptor);
    match accepted {
        Ok(transport) => connection::serve(transport, Input::default(), client, worker).await,
        Err(error) => {
            worker.meter.handshake_failed();
            // Who comes and goes, or is too slow, need not be written about: scanners do nothing else.
            if !matches!(error, HandshakeError::Connection(_) | HandshakeError::Ended) {
                worker.log.failure(
                    &worker.core,
                    format_args!("a client was not served: {error}"),
                );
            }
        }
    }
}

/// The alert that stands for a handshake which failed for reasons that have been written about (RFC 8446 6.2).
const HANDSHAKE_FAILURE: u8 = 40;

/// Shakes hands with the server that is called `host`, by `until`.
///
/// # Errors
/// Those of the connection; whatever else is wrong is written about and becomes one, too.
pub(crate) async fn connect(
    stream: Stream,
    connector: &Connector,
    host: &str,
    until: Instant,
    worker: &Worker,
) -> Result<Transport, Error> {
    let deadline = until.min(worker.core.now_exact() + worker.timeouts.tls_handshake);
    Transport::connect(stream, connector, host, deadline)
        .await
        .map_err(|error| match error {
            HandshakeError::Connection(error) => Error::new(Op::Connect, error.kind),
            HandshakeError::Ended => Error::new(Op::Connect, Kind::Truncated),
            error => {
                worker.log.failure(
                    &worker.core,
                    format_args!("no TLS with the server {host}: {error}"),
                );
                Error::new(Op::Connect, Kind::Alert(HANDSHAKE_FAILURE))
            }
        })
}
