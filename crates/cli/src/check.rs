//! `onrush check`: reports what `onrush serve` would report about a configuration, without binding anything.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use onrush_config::Plan;
use onrush_config::plan::Action;
use onrush_serve::{Checked, Denied, PlanIssue};

use crate::serve::{
    Audience, ConfigSource, User, checked, denied_to, of_reload, refusal, token, user, warn,
};
use crate::terminal::{Out, print_error};

/// Check a configuration and print each error and warning with its position.
#[derive(clap::Args)]
#[command(after_help = "Example:
  onrush check onrush.toml && systemctl restart onrush

Exit codes: 0 valid, 1 invalid.")]
pub(crate) struct Args {
    /// Configuration file (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Checks the configuration without starting anything, and returns the exit code.
pub(crate) fn run(args: &Args) -> ExitCode {
    match check(&args.file) {
        Ok((files, checked)) => {
            let with = match files - 1 {
                0 => String::new(),
                1 => " with 1 included file".into(),
                more => format!(" with {more} included files"),
            };
            let _ = writeln!(
                Out::standard(),
                "{}{with} can be used: {}
  {}, if it is started here{}",
                args.file.display(),
                summary(checked.plan()),
                checked.shares(),
                without_bound(checked.plan()),
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(format_args!("onrush check: {error:#}"));
            ExitCode::from(1)
        }
    }
}

/// Checks the configuration, prints warnings, and returns its number of files and its plan.
fn check(file: &Path) -> anyhow::Result<(usize, Checked)> {
    let written = ConfigSource::read(file)?;
    let plan = written.plan(Audience::Terminal)?;
    let user = user(&plan)?;
    let checked = checked(plan, Some(&written), Audience::Terminal)?;
    let unopenable = checked.start_errors();
    if !unopenable.is_empty() {
        return Err(refusal(&unopenable, Some(&written), Audience::Terminal));
    }
    token(&checked.plan().admin)?;
    if let Some(user) = user {
        check_rights(&user, checked.plan(), &written)?;
    }
    Ok((written.sources().iter().count(), checked))
}

/// Checks which files the configured user may not use. The kernel decides, with the rights of that user.
fn check_rights(user: &User, plan: &Plan, written: &ConfigSource) -> anyhow::Result<()> {
    let looked = || denied_to(user, (plan, Some(written)), &[]);
    let Denied {
        wrong,
        unread,
        warnings,
    } = match user.identity.run_as(looked) {
        Ok(found) => found,
        Err(error) => {
            let message = format!(
                "cannot check whether {user} may use the files: {error}; run onrush check as root"
            );
            let place = None;
            Denied {
                warnings: vec![PlanIssue { place, message }],
                ..Denied::default()
            }
        }
    };
    let warnings = [of_reload(unread), warnings].concat();
    warn(&warnings, Some(written), Audience::Terminal);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(refusal(&wrong, Some(written), Audience::Terminal)),
    }
}

fn summary(plan: &Plan) -> String {
    let counted = |count: usize, one: &str, several: &str| {
        format!("{count} {}", if count == 1 { one } else { several })
    };
    [
        counted(plan.listen.len(), "listener", "listeners"),
        counted(plan.routes.len(), "route", "routes"),
        counted(
            plan.upstreams.len(),
            "group of servers",
            "groups of servers",
        ),
    ]
    .join(", ")
}

/// Describes how many forwarding routes have no `request` timeout, the only timeout without a default.
fn without_bound(plan: &Plan) -> String {
    let forwarding = plan
        .routes
        .iter()
        .filter(|route| matches!(route.action, Action::Forward { .. }));
    let (mut all, mut unbounded) = (0, 0);
    for route in forwarding {
        let timeouts = route.timeouts.as_ref().unwrap_or(&plan.timeouts);
        all += 1;
        unbounded += usize::from(timeouts.request.is_none());
    }
    match (unbounded, all) {
        (0, _) => String::new(),
        (1, 1) => "\n  the total time of a request is not limited: the route that forwards has no timeout \"request\"".into(),
        _ => format!(
            "\n  the total time of a request is not limited: {unbounded} of {all} routes that forward have no timeout \"request\""
        ),
    }
}
