//! Reload: reads the file again, and applies it if all of it is valid.
//!
//! The reported differences compare the two texts (`changes.rs` of the crate `config`), not the plans: a user knows the
//! keys of the file.

use std::fmt::Display;
use std::path::Path;

use anyhow::Context;
use onrush_admin::{CommandResult, CurrentToken, Token, TokenError};
use onrush_config::Sources;
use onrush_config::changes::{Change, changes};
use onrush_config::plan;
use onrush_engine::Address;
use onrush_serve::{Applied, Server};
use serde_json::{Value, json};

use super::admin::{self, ActiveConfiguration};
use super::args::{self, Args};
use super::config_source::{Audience, ConfigSource, checked};
use super::error_log::ErrorLog;
use super::packet_cpus::arrival;
use super::privileges::Privileges;
use super::watch::{Watch, WatchedFiles};

/// Changes listed in the log; further ones are counted.
const CHANGES_SHOWN: usize = 50;

/// State kept between reloads.
pub(super) struct Reloader<'a> {
    args: &'a Args,
    /// Texts in force; `None` without a file.
    sources: Option<Sources>,
    watch: Option<Watch>,
    in_force: ActiveConfiguration,
    error_log: ErrorLog,
    /// Token of the admin interface. `None` without a TCP address.
    token: Option<CurrentToken>,
    privileges: Privileges,
}

impl<'a> Reloader<'a> {
    /// `written` is the configuration at the start; `watch` is updated at each reload.
    pub(super) fn new(
        args: &'a Args,
        written: Option<ConfigSource>,
        watch: Option<Watch>,
        (in_force, error_log, token): (ActiveConfiguration, ErrorLog, Option<CurrentToken>),
        privileges: Privileges,
    ) -> Self {
        Self {
            in_force,
            error_log,
            token,
            privileges,
            args,
            sources: written.map(|written| written.sources().clone()),
            watch,
        }
    }

    /// Reads the file again and applies it, with the flags of the command line on top. The log and the outcome report
    /// the result; `why` names the cause.
    pub(super) fn reload(&mut self, server: &mut Server, why: &str) -> CommandResult {
        let (Some(path), Some(before)) = (self.args.config.as_deref(), &self.sources) else {
            let said = "nothing was done: onrush serve was started without --config FILE, so there is no file to reload";
            tracing::warn!("{why}: {said}");
            return Err(said.to_owned());
        };
        let written =
            ConfigSource::read(path).map_err(|error| self.privileges.explain(error, path, None));
        let outcome = written.and_then(|written| {
            let applied = self.apply(server, path, &written)?;
            Ok((applied, written))
        });
        match outcome {
            Ok((applied, written)) => {
                let changes = changes(before, written.sources());
                say_what_changed(path.display(), &changes, &applied);
                log_generations_in_use(server);
                let report = report(&changes, &applied, server);
                self.in_force.set(server, Some(written.sources()));
                self.sources = Some(written.sources().clone());
                Ok(report)
            }
            Err(error) => {
                let said = format!(
                    "{} was rejected, generation {} stays in force: {error:#}",
                    path.display(),
                    server.generation()
                );
                tracing::error!(event = "reload_refused", "{said}");
                Err(said)
            }
        }
    }

    fn apply(
        &self,
        server: &mut Server,
        path: &Path,
        written: &ConfigSource,
    ) -> anyhow::Result<Applied> {
        let watched = WatchedFiles::of(written);
        let plan = match args::plan(self.args, Some(written), Audience::Log) {
            Ok(plan) => plan,
            Err(error) => {
                self.watch(watched);
                return Err(self.privileges.explain(error, path, Some(written)));
            }
        };
        // Also when it cannot be used: the mistake may be corrected in a file that was not included before.
        self.watch(watched.with(&plan));
        let error_log = plan.error_log;
        self.privileges.check_reload(&plan, written)?;
        let token = self.new_token(&plan.admin)?;
        let checked = checked(plan, Some(written), Audience::Log)?;
        let applied = server.apply(checked.with_receiving_cpus(arrival()));
        let applied = applied.context("cannot apply it")?;
        self.error_log.follow(error_log);
        if let (Some(current), Some(token)) = (&self.token, token) {
            current.replace(token);
        }
        Ok(applied)
    }

    /// Reads the token again. `None` without a file, and when this process may no longer read it.
    fn new_token(&self, plan: &plan::Admin) -> anyhow::Result<Option<Token>> {
        admin::token(plan).or_else(|error| {
            let why = error.downcast_ref::<TokenError>();
            if !(why.is_some_and(TokenError::is_denied) && self.privileges.are_reduced()) {
                return Err(error);
            }
            tracing::warn!(
                "the token of the admin interface is unchanged: {error:#}; a restart reads the new one"
            );
            Ok(None)
        })
    }

    fn watch(&self, watched: WatchedFiles) {
        if let Some(watch) = &self.watch {
            watch.change(watched);
        }
    }
}

/// The log's report as JSON.
fn report(changes: &[Change], applied: &Applied, server: &Server) -> Value {
    let texts = |addresses: &[Address]| -> Vec<String> {
        addresses.iter().map(ToString::to_string).collect()
    };
    let shown = changes.iter().take(CHANGES_SHOWN);
    json!({
        "generation": applied.generation(),
        "changes": shown.map(ToString::to_string).collect::<Vec<_>>(),
        "changes_not_shown": changes.len().saturating_sub(CHANGES_SHOWN),
        "listening": texts(applied.added()),
        "listening_no_more": texts(applied.removed()),
        "generations_in_use": server.earlier().collect::<Vec<_>>(),
    })
}

fn say_what_changed(path: impl Display, changes: &[Change], applied: &Applied) {
    let count = match changes.len() {
        0 => "no changes in the file; the files that it names were read again".into(),
        1 => "1 change".into(),
        more => format!("{more} changes"),
    };
    tracing::info!(
        event = "reload",
        generation = applied.generation(),
        "{path} is in force as generation {}: {count}",
        applied.generation()
    );
    for change in changes.iter().take(CHANGES_SHOWN) {
        tracing::info!("  {change}");
    }
    if changes.len() > CHANGES_SHOWN {
        tracing::info!("  and {} more", changes.len() - CHANGES_SHOWN);
    }
    for address in applied.added() {
        tracing::info!("  listening on {address}");
    }
    for address in applied.removed() {
        tracing::info!("  no longer listening on {address}");
    }
}

/// Logs which earlier configurations still have requests or tunnels.
fn log_generations_in_use(server: &Server) {
    let left: Vec<String> = server.earlier().map(|number| number.to_string()).collect();
    if !left.is_empty() {
        tracing::info!(
            "  requests in flight keep their configuration: generation {}",
            left.join(", ")
        );
    }
}
