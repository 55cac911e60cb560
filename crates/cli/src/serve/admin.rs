//! The admin interface of the process, and what connects it to the server.

mod address;

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::Context;
use onrush_admin::{
    Admin, Command, CommandResult, CurrentToken, Operator, ProcessInfo, Readiness, Setup, Token,
};
use onrush_config::mask::mask;
use onrush_config::plan::{self, LogLevel};
use onrush_config::{RoutePlace, Sources, route_places};
use onrush_engine::clock::unix_time;
use onrush_engine::{Address, Claim, Promise};
use onrush_serve::{Checked, Explainer, Server};
use serde_json::{Value, json};

use super::config_source::ConfigSource;
use super::error_log::ErrorLog;
use super::handover::io_name;
use super::privileges::Privileges;
use super::server_command::ServerCommand;
use crate::explain_request;

pub(super) use address::{AddressHolder, AdminAddress, claim, split_passed};

/// How long to wait for the predecessor to release the address.
const PATIENCE: Duration = Duration::from_secs(60);

/// Interval between attempts to bind the address.
const INTERVAL: Duration = Duration::from_millis(100);

/// The configuration in force, as the interface shows and explains it.
#[derive(Clone, Default)]
pub(super) struct ActiveConfiguration(Arc<Mutex<InForceState>>);

#[derive(Default)]
struct InForceState {
    shown: Value,
    generation: u64,
    /// `None` before the server starts.
    checked: Option<Checked>,
    /// Positions of the routes in their files.
    places: Vec<RoutePlace>,
    /// Addresses that the server listens on.
    claims: Vec<Weak<Claim>>,
}

impl ActiveConfiguration {
    /// Sets the configuration of `server`, with the texts of its files; without a file, the flags.
    pub(super) fn set(&self, server: &Server, sources: Option<&Sources>) {
        let generation = server.generation();
        let flags: Vec<String> = env::args().skip(1).collect();
        let mut said = json!({
            "generation": generation,
            "command_line": flags,
            "file": null,
            "text": null,
            "included": [],
        });
        let mut files = sources.into_iter().flat_map(Sources::iter).map(|source| {
            let path = source.path().display().to_string();
            (path, mask(source.text()))
        });
        if let Some((path, text)) = files.next() {
            said["file"] = path.into();
            said["text"] = text.into();
        }
        said["included"] = files
            .map(|(path, text)| json!({ "file": path, "text": text }))
            .collect();
        *self.held() = InForceState {
            shown: said,
            generation,
            checked: Some(server.checked()),
            places: sources.map_or(Vec::new(), route_places),
            claims: server.claims().collect(),
        };
    }

    /// Unix sockets that the server listens on and whose file is gone.
    pub(super) fn sockets_gone(&self) -> Vec<String> {
        let claims = self.held().claims.clone();
        let claims = claims.iter().filter_map(Weak::upgrade);
        let gone = claims.filter(|claim| claim.has_lost_file());
        gone.map(|claim| claim.address().to_string()).collect()
    }

    fn held(&self) -> MutexGuard<'_, InForceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Explains a request, with the file contents that were read when the configuration came into force.
    fn explain(&self, asked: &Value) -> anyhow::Result<Value> {
        let asked = explain_request::ExplainArgs::of(asked)?;
        let held = self.held();
        let checked = held
            .checked
            .clone()
            .context("no configuration is in force yet")?;
        let (generation, places) = (held.generation, held.places.clone());
        drop(held);
        let explainer = Explainer::new(checked)?;
        let mut explained = explain_request::explain(&explainer, &places, &asked)?;
        explained["generation"] = generation.into();
        Ok(explained)
    }
}

/// Passes orders of the admin interface on to the control loop.
struct ChannelOperator {
    ask: Sender<ServerCommand>,
    in_force: ActiveConfiguration,
    error_log: ErrorLog,
}

impl Operator for ChannelOperator {
    fn execute(&self, order: Command, outcome: Promise<CommandResult>) {
        // If the receiver is gone, the promise is dropped.
        let _ = self.ask.send(ServerCommand::Order(order, outcome));
    }

    fn explain(&self, asked: &Value) -> CommandResult {
        let explained = self.in_force.explain(asked);
        explained.map_err(|error| format!("{error:#}"))
    }

    fn configuration(&self) -> Value {
        self.in_force.held().shown.clone()
    }

    fn removed_sockets(&self) -> Vec<String> {
        self.in_force.sockets_gone()
    }

    fn log_level(&self) -> &'static str {
        self.error_log.level().name()
    }

    fn set_log_level(&self, name: &str) -> Result<(), String> {
        let Some(level) = LogLevel::named(name) else {
            let names = LogLevel::ALL.map(|(name, _)| name);
            return Err(format!(
                "{name:?} is not a level: expected one of {}",
                names.join(", ")
            ));
        };
        self.error_log.set_level(level);
        Ok(())
    }
}

/// The admin interface, once it has started.
#[derive(Clone, Default)]
pub(super) struct Interface(Arc<Mutex<Option<Admin>>>);

impl Interface {
    pub(super) fn address(&self) -> Option<String> {
        let admin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        admin.as_ref().map(|admin| admin.address().to_string())
    }

    /// Stops the interface, which releases its address.
    pub(super) fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn begin(&self, admin: Admin) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(admin);
    }
}

/// State of the process that the interface reports and controls.
pub(super) struct AdminContext<'a> {
    pub(super) server: &'a Server,
    pub(super) readiness: Readiness,
    pub(super) in_force: ActiveConfiguration,
    pub(super) ask: Sender<ServerCommand>,
    pub(super) error_log: ErrorLog,
    pub(super) privileges: Value,
}

impl<'a> AdminContext<'a> {
    /// State of a process that has just started to serve the configuration `written`, or its flags.
    pub(super) fn new(
        server: &'a Server,
        written: Option<&ConfigSource>,
        (ask, error_log): (&Sender<ServerCommand>, &ErrorLog),
        privileges: &Privileges,
    ) -> AdminContext<'a> {
        let in_force = ActiveConfiguration::default();
        in_force.set(server, written.map(ConfigSource::sources));
        AdminContext {
            server,
            readiness: Readiness::default(),
            in_force,
            ask: ask.clone(),
            error_log: error_log.clone(),
            privileges: privileges.report(),
        }
    }
}

/// Reads the token that the plan names.
pub(crate) fn token(plan: &plan::Admin) -> anyhow::Result<Option<Token>> {
    let plan::Admin::Tcp { token_file, .. } = plan else {
        return Ok(None);
    };
    let token = Token::read(token_file);
    let token = token.with_context(|| format!("[admin] token_file {}", token_file.display()))?;
    Ok(Some(token))
}

pub(super) fn start(
    place: AdminAddress,
    token: Option<CurrentToken>,
    about: AdminContext<'_>,
) -> anyhow::Result<Interface> {
    let interface = Interface::default();
    let server = about.server;
    let facts = ProcessInfo {
        version: env!("CARGO_PKG_VERSION"),
        started: unix_time(),
        driver: io_name(server.driver().io).to_owned(),
        cpus: server.cpus().to_vec(),
        privileges: about.privileges,
    };
    let connections_max = server.shares().admins;
    let (readiness, inspector) = (about.readiness, server.inspector());
    let journal = about.error_log.journal().clone();
    let operator = Box::new(ChannelOperator {
        ask: about.ask,
        in_force: about.in_force,
        error_log: about.error_log,
    });
    let begin = move |claim| {
        Admin::start(Setup {
            claim,
            connections_max,
            token,
            facts,
            readiness,
            inspector,
            journal,
            operator,
        })
    };
    match place {
        AdminAddress::Nowhere => {}
        AdminAddress::Missed(why) => tracing::warn!("{why}"),
        AdminAddress::Claimed(claim) => {
            interface.begin(begin(claim).context("cannot start the admin interface")?);
        }
        AdminAddress::Awaited(address) => {
            let waiting = interface.clone();
            let wait = move || match claim_patiently(&address).and_then(|claim| Ok(begin(claim)?)) {
                Ok(admin) => waiting.begin(admin),
                Err(error) => tracing::error!("no admin interface on {address}: {error}"),
            };
            thread::Builder::new()
                .name("admin-wait".into())
                .spawn(wait)?;
        }
    }
    Ok(interface)
}

fn claim_patiently(address: &Address) -> anyhow::Result<Claim> {
    let until = Instant::now() + PATIENCE;
    loop {
        match Claim::new(address) {
            Err(error) if error.is_address_in_use() && Instant::now() < until => {
                thread::sleep(INTERVAL);
            }
            outcome => return Ok(outcome?),
        }
    }
}
