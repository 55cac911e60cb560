//! Builds the TLS acceptors and connectors of a plan.

use std::sync::Arc;

use onrush_config::Plan;
use onrush_config::plan::{
    self, Certificate, ClientAuthorities, ClientCertificates, FilePath, HttpVersions, Protocol,
    Tls, TlsProfile, UpstreamProtocol, UpstreamTls,
};
use onrush_tls::{
    Acceptor, Authorities, ClientSetup, Clients, Connector, Identity, Misdirected, NamedClients,
    Profile, ReloadResult, ServerSetup, Subject, Verify, Watch, WatchedConfig,
};

use crate::site::client_rules;
use crate::worker::plan_issue::{PlanIssue, PlanIssues};

/// TLS acceptors of the addresses and connectors of the groups, in the order of the plan; `None` without TLS.
#[derive(Clone, Default)]
pub(crate) struct Encryption {
    pub(crate) acceptors: Vec<Option<Arc<Acceptor>>>,
    pub(crate) connectors: Vec<Option<Arc<Connector>>>,
    pub(crate) collector: Option<Arc<Connector>>,
}

impl Encryption {
    /// Reads all certificates of a plan. Unusable entries become `None`, with an error in `troubles`.
    pub(crate) fn of(plan: &Plan, troubles: &mut PlanIssues) -> Self {
        let acceptors = plan.listen.iter().map(|listen| {
            let tls = listen.tls.as_ref()?;
            let made = Acceptor::new(server_setup(tls, &listen.protocol));
            keep(made, |subject| server_file(tls, subject), troubles)
        });
        let acceptors = acceptors.collect();
        let connectors = plan.upstreams.iter().map(|upstream| {
            let tls = upstream.tls.as_ref()?;
            let mut setup = client_setup(tls);
            if let UpstreamProtocol::Http2(_) = upstream.protocol {
                setup.protocols = vec!["h2"];
            }
            let made = Connector::new(setup);
            keep(made, |subject| client_file(tls, subject), troubles)
        });
        let connectors = connectors.collect();
        let collector = collector_tls(plan).and_then(|tls| {
            let made = Connector::new(client_setup(tls));
            keep(made, |subject| client_file(tls, subject), troubles)
        });
        Self {
            acceptors,
            connectors,
            collector,
        }
    }

    /// Reuses from `before`, of the plan `before_plan`, the entries that `plan` configures in the same way: session
    /// tickets and connections to servers stay valid.
    pub(crate) fn carry(&mut self, plan: &Plan, before: &Encryption, before_plan: &Plan) {
        for (listen, acceptor) in plan.listen.iter().zip(&mut self.acceptors) {
            let known = before_plan.listen.iter().position(|it| it == listen);
            if let Some(known) = known {
                acceptor.clone_from(&before.acceptors[known]);
            }
        }
        for (upstream, connector) in plan.upstreams.iter().zip(&mut self.connectors) {
            let is_same = |it: &plan::Upstream| {
                (&it.name, &it.tls, it.protocol)
                    == (&upstream.name, &upstream.tls, upstream.protocol)
            };
            let known = before_plan.upstreams.iter().position(is_same);
            if let Some(known) = known {
                connector.clone_from(&before.connectors[known]);
            }
        }
        if collector_tls(plan) == collector_tls(before_plan) {
            self.collector.clone_from(&before.collector);
        }
    }

    /// Watches the files for changes.
    pub(crate) fn watch(&self) -> Option<Watch> {
        let acceptors = self.acceptors.iter().flatten().cloned();
        let connectors = self.connectors.iter().chain([&self.collector]);
        let connectors = connectors.flatten().cloned();
        let watched = acceptors
            .map(WatchedConfig::Acceptor)
            .chain(connectors.map(WatchedConfig::Connector));
        Watch::start(watched.collect(), |reloaded| match reloaded {
            ReloadResult::Applied(warnings) => {
                tracing::info!(
                    event = "certificates_changed",
                    "certificates changed; new connections use them"
                );
                for warning in &warnings {
                    tracing::warn!("{warning}");
                }
            }
            ReloadResult::Refused(wrong) => {
                for trouble in wrong {
                    tracing::warn!(
                        event = "certificates_refused",
                        "certificates changed and cannot be used; the old ones stay in use: {trouble}"
                    );
                }
            }
            ReloadResult::Denied(files) => {
                for file in files {
                    tracing::warn!(
                        event = "certificates_denied",
                        "cannot watch {} (permission denied), so changes are not noticed; let the user of this process enter its directory",
                        file.display()
                    );
                }
            }
        })
    }
}

fn collector_tls(plan: &Plan) -> Option<&UpstreamTls> {
    plan.tracing.as_ref()?.collector.tls.as_ref()
}

/// Shares a successful result and records its warnings, or records the errors. `file` returns the file that a subject
/// refers to.
fn keep<'p, T>(
    made: Result<(T, Vec<onrush_tls::Problem>), Vec<onrush_tls::Problem>>,
    file: impl Fn(Subject) -> Option<&'p FilePath>,
    troubles: &mut PlanIssues,
) -> Option<Arc<T>> {
    let placed = |trouble: onrush_tls::Problem| PlanIssue {
        place: file(trouble.subject).and_then(|file| file.place().cloned()),
        message: trouble.message,
    };
    match made {
        Ok((made, warnings)) => {
            troubles.warnings.extend(warnings.into_iter().map(placed));
            Some(Arc::new(made))
        }
        Err(wrong) => {
            troubles.wrong.extend(wrong.into_iter().map(placed));
            None
        }
    }
}

/// The file of a listener's TLS settings that a subject refers to.
fn server_file(tls: &Tls, subject: Subject) -> Option<&FilePath> {
    let files = |index: usize| match &tls.certificates[index] {
        Certificate::SelfSigned => None,
        Certificate::Files {
            certificate,
            key,
            staple,
        } => Some((certificate, key, staple.as_ref())),
    };
    match subject {
        Subject::Certificate(index) => files(index).map(|(certificate, ..)| certificate),
        Subject::Key(index) => files(index).map(|(_, key, _)| key),
        Subject::Staple(index) => files(index).and_then(|(.., staple)| staple),
        Subject::Authorities => tls.clients.authorities().map(|by| &by.file),
        Subject::RevocationList(index) => {
            let authorities = tls.clients.authorities();
            authorities.map(|by| &by.revocation_lists[index])
        }
        Subject::Setup => None,
    }
}

/// The file of a group's TLS settings that a subject refers to; a group has at most one certificate.
fn client_file(tls: &UpstreamTls, subject: Subject) -> Option<&FilePath> {
    match subject {
        Subject::Certificate(_) => tls.certificate.as_ref().map(|(certificate, _)| certificate),
        Subject::Key(_) => tls.certificate.as_ref().map(|(_, key)| key),
        Subject::Authorities => match &tls.verify {
            plan::Verify::File(file) => Some(file),
            plan::Verify::System | plan::Verify::Insecure => None,
        },
        Subject::Staple(_) | Subject::RevocationList(_) | Subject::Setup => None,
    }
}

fn server_setup(tls: &Tls, protocol: &Protocol) -> ServerSetup {
    let identity = |certificate: &Certificate| match certificate {
        Certificate::SelfSigned => Identity::SelfSigned,
        Certificate::Files {
            certificate,
            key,
            staple,
        } => Identity::Files {
            certificate: certificate.to_path_buf(),
            key: key.to_path_buf(),
            staple: staple.as_ref().map(|staple| staple.to_path_buf()),
        },
    };
    ServerSetup {
        certificates: tls.certificates.iter().map(identity).collect(),
        profile: match tls.profile {
            TlsProfile::Modern => Profile::Modern,
            TlsProfile::Intermediate => Profile::Intermediate,
        },
        clients: clients(&tls.clients),
        misdirected: match tls.misdirected {
            plan::MisdirectedRequests::Refuse => Misdirected::Refuse,
            plan::MisdirectedRequests::Serve => Misdirected::Serve,
        },
        named_clients: tls
            .names
            .iter()
            .map(|rule| NamedClients {
                names: client_rules::names(&rule.hosts),
                clients: clients(&rule.clients),
            })
            .collect(),
        // Old clients offer only HTTP/1.0; a client that offers both versions gets HTTP/1.1.
        protocols: match protocol {
            Protocol::Http(HttpVersions::Both) => vec!["h2", "http/1.1", "http/1.0"],
            Protocol::Http(HttpVersions::Http1) => vec!["http/1.1", "http/1.0"],
            Protocol::Http(HttpVersions::Http2) => vec!["h2"],
            // Without ALPN protocols, a client that offers HTTP is rejected (RFC 7301 3.2).
            Protocol::Memcached(..)
            | Protocol::Echo(_)
            | Protocol::Sink(_)
            | Protocol::Responder(_) => Vec::new(),
        },
    }
}

fn clients(plan: &ClientCertificates) -> Clients {
    match plan {
        ClientCertificates::Ignored => Clients::Ignored,
        ClientCertificates::Optional(by) => Clients::Optional(authorities(by)),
        ClientCertificates::Required(by) => Clients::Required(authorities(by)),
    }
}

fn authorities(by: &ClientAuthorities) -> Authorities {
    let lists = by.revocation_lists.iter();
    Authorities {
        file: by.file.to_path_buf(),
        revocation_lists: lists.map(|list| list.to_path_buf()).collect(),
    }
}

fn client_setup(tls: &UpstreamTls) -> ClientSetup {
    ClientSetup {
        verify: match &tls.verify {
            plan::Verify::System => Verify::System,
            plan::Verify::File(file) => Verify::File(file.to_path_buf()),
            plan::Verify::Insecure => Verify::Nothing,
        },
        name: tls.name.clone(),
        certificate: tls
            .certificate
            .as_ref()
            .map(|(certificate, key)| (certificate.to_path_buf(), key.to_path_buf())),
        ..ClientSetup::default()
    }
}
