//! TLS towards clients: from the plan to what accepts connections, and from a connection to one that speaks HTTP.

use std::rc::Rc;
use std::sync::Arc;

use onrush_config::Plan;
use onrush_config::plan::{Certificate, ClientCertificates, Tls, TlsProfile};
use onrush_engine::{Input, Stream};
use onrush_tls::{
    Acceptor, Clients, HandshakeError, Identity, Profile, Reloaded, ServerSetup, Transport, Watch,
    Watched,
};

use crate::client::Client;
use crate::connection;
use crate::worker::Worker;

/// What the addresses of a plan accept connections with; `None` where TLS is not spoken.
pub(crate) type Acceptors = Arc<[Option<Arc<Acceptor>>]>;

/// Reads all certificates of a plan. Addresses whose certificates cannot be used have none; what is wrong with them goes
/// to `wrong`.
pub(crate) fn acceptors(
    plan: &Plan,
    warnings: &mut Vec<String>,
    wrong: &mut Vec<String>,
) -> Acceptors {
    let mut acceptor = |tls: &Tls| match Acceptor::new(setup(tls)) {
        Ok((acceptor, said)) => {
            warnings.extend(said.iter().map(ToString::to_string));
            Some(Arc::new(acceptor))
        }
        Err(troubles) => {
            wrong.extend(troubles.iter().map(ToString::to_string));
            None
        }
    };
    let listen = plan.listen.iter();
    listen
        .map(|listen| listen.tls.as_ref().and_then(&mut acceptor))
        .collect()
}

fn setup(tls: &Tls) -> ServerSetup {
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

/// Follows changes of the files of certificates.
pub(crate) fn watch(acceptors: &Acceptors) -> Option<Watch> {
    let watched = acceptors
        .iter()
        .flatten()
        .map(|acceptor| Watched::Acceptor(Arc::clone(acceptor)));
    Watch::start(watched.collect(), |reloaded| match reloaded {
        Reloaded::Taken(warnings) => {
            tracing::info!("certificates have changed; new connections get the new ones");
            warnings
                .iter()
                .for_each(|warning| tracing::warn!("{warning}"));
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
