//! Rights of the process: the initial rights until everything is bound and read, then the reduced ones.
//!
//! ```text
//!   one thread                                                    │ threads
//!   read the file, keys, passwords ── bind ── Privileges::reduce ─┼─ cores, logs, admin interface …
//!   with the rights of root                     another user      │ with its rights
//! ```
//!
//! The kernel keeps an identity, capabilities, a Landlock domain and `no_new_privs` for each thread, so the process
//! changes them while it has one thread: `reduce` gives the files to the user and gives up groups, IDs and capabilities;
//! then `confine` limits the directories (Landlock), and `refuse_calls` the system calls. `Prepared` of the crate `serve`
//! has done everything that may need root and has started no thread.
//!
//! The cores' TCP listeners are opened before the change, since the kernel lets only sockets of one user share an
//! address. System calls are refused after it, by a filter that is off by default: the kernel's check of each call
//! costs 3.5 % of a small request with epoll, and nothing with a ring (`runs/2026-11-23-seccomp`). The handover reports
//! the filter to the next process, so that filters do not accumulate.

use std::path::{Path, PathBuf};

use anyhow::Context;
use onrush_config::Plan;
use onrush_config::plan::Process;
use onrush_engine::{Claim, Confinement, Rights, confine, refuse_calls, refused_calls};
use onrush_serve::{Denied, PlanIssue, Prepared, UsedPaths, denied, is_unreadable};
use serde_json::{Value, json};

use super::config_source::{Audience, ConfigSource, refusal, warn};
use super::confinement;
use super::user::User;

/// Advice for a file that the user cannot read.
const UNREADABLE_ADVICE: &str = "make it readable for that user or its group (chgrp, chmod g+r), or restart the server, which reads it as root";

#[derive(Clone, Default)]
pub(super) struct Privileges {
    /// `None` for the initial rights.
    reduced: Option<(User, Rights)>,
    /// State of the system call filter.
    seccomp: Seccomp,
    /// State of the confinement to directories; `None` if it is not configured.
    landlock: Option<Confinement>,
    /// Files of Unix sockets that a service manager has created.
    managed: Vec<PathBuf>,
}

/// Rights that the parent process has given up, and that this one inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inherited {
    /// The system call filter is active.
    pub(super) seccomp: bool,
    /// Version of Landlock in force.
    pub(super) landlock: Option<i32>,
}

/// State of the system call filter (seccomp(2)).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Seccomp {
    #[default]
    Off,
    On,
}

/// The user that a plan sets.
pub(crate) fn user(plan: &Plan) -> anyhow::Result<Option<User>> {
    let run_as = plan.process.run_as.as_ref();
    let user = run_as.map(User::of).transpose();
    user.context("[process] user")
}

/// Checks, with the rights of this thread, which files of a plan and of its configuration the user may not use. Sockets
/// created by a service manager are excluded.
pub(crate) fn denied_to(
    user: &User,
    (plan, written): (&Plan, Option<&ConfigSource>),
    managed: &[PathBuf],
) -> Denied {
    let who = user.to_string();
    let mut found = denied(plan, &who, managed);
    let files = written.map(ConfigSource::files).unwrap_or_default();
    found.unread.extend(unread(&who, files));
    found
}

fn unread(who: &str, files: Vec<PathBuf>) -> Vec<PlanIssue> {
    let unreadable = files.into_iter().filter(|file| is_unreadable(file));
    let trouble = |file: PathBuf| PlanIssue {
        place: None,
        message: format!("{who} may not read {}", file.display()),
    };
    unreadable.map(trouble).collect()
}

/// Rewords errors about unreadable files as warnings for the time after the start.
pub(crate) fn of_reload(unread: Vec<PlanIssue>) -> Vec<PlanIssue> {
    let later = |trouble: PlanIssue| PlanIssue {
        message: format!(
            "{}: a reload will fail, and new contents will not be read; {UNREADABLE_ADVICE}",
            trouble.message
        ),
        ..trouble
    };
    unread.into_iter().map(later).collect()
}

/// Checks that `user` can read the configuration's files if the process already runs as that user: after an upgrade, or
/// because it was started as that user.
pub(super) fn check_start(
    user: Option<&User>,
    plan: &Plan,
    written: Option<&ConfigSource>,
) -> anyhow::Result<()> {
    let Some(user) = user.filter(|user| user.identity.is_of_this_process()) else {
        return Ok(());
    };
    let unread = denied_to(user, (plan, written), &[]).unread;
    match unread.is_empty() {
        true => Ok(()),
        false => Err(refusal(&mended(unread), written, Audience::Terminal)),
    }
}

impl Privileges {
    /// Changes to `user` for good, and transfers to it the files that the server needs later. Warns of files that the
    /// user cannot use.
    ///
    /// # Errors
    /// When the change fails, or the server could not start as that user.
    pub(super) fn reduce(
        user: Option<User>,
        prepared: &Prepared,
        admin: Option<&Claim>,
        written: Option<&ConfigSource>,
    ) -> anyhow::Result<Privileges> {
        let Some(user) = user else {
            return Ok(Privileges::default());
        };
        if !user.identity.is_of_this_process() && onrush_engine::may_change_identity() {
            let handed = prepared.hand_to(&user.identity);
            handed.map_err(|(file, error)| {
                anyhow::Error::new(error).context(format!("cannot give {file} to {user}"))
            })?;
            let given = admin.map(|claim| claim.give_file_to(&user.identity));
            given
                .transpose()
                .with_context(|| format!("cannot give the admin socket to {user}"))?;
        }
        let rights = user.identity.assume();
        let rights = rights.with_context(|| format!("cannot become {user}"))?;
        let managed = prepared.managed_sockets();
        let found = denied_to(&user, (prepared.plan(), written), &managed);
        if !found.wrong.is_empty() {
            return Err(refusal(&found.wrong, written, Audience::Terminal));
        }
        let warnings = [of_reload(found.unread), found.warnings].concat();
        warn(&warnings, written, Audience::Terminal);
        Ok(Privileges {
            reduced: Some((user, rights)),
            managed,
            ..Privileges::default()
        })
    }

    /// Confines the process to the directories of the plan, of the system and of `program`, if `plan` requires it. An
    /// inherited confinement is kept and not repeated.
    ///
    /// # Errors
    /// When the kernel refuses, or an inherited confinement excludes something that the plan uses.
    pub(super) fn confine(
        &mut self,
        (plan, written): (&Plan, Option<&ConfigSource>),
        admin: Option<&Claim>,
        program: &Path,
        before: Inherited,
    ) -> anyhow::Result<()> {
        let used = confinement::of_configuration(plan, written, admin);
        if let Some(abi) = before.landlock {
            self.landlock = Some(Confinement::Directories { abi });
            return self.check_confinement(&used, written, Audience::Terminal);
        }
        if let Some(landlock) = &plan.process.landlock {
            let warnings = confinement::warnings(&used, landlock);
            warn(&warnings, written, Audience::Terminal);
            let directories = confinement::with_system(used, program);
            self.landlock = Some(confine(&directories).context("[process] landlock")?);
        }
        Ok(())
    }

    fn check_confinement(
        &self,
        used: &UsedPaths,
        written: Option<&ConfigSource>,
        audience: Audience,
    ) -> anyhow::Result<()> {
        let closed = match self.landlock {
            Some(Confinement::Directories { .. }) => used.closed(),
            Some(Confinement::None) | None => return Ok(()),
        };
        match closed.is_empty() {
            true => Ok(()),
            false => Err(refusal(&confinement::errors_of(closed), written, audience)),
        }
    }

    /// Installs the system call filter if `plan` sets it. An inherited filter is kept and not repeated.
    pub(super) fn refuse_calls(&mut self, plan: &Process, before: Inherited) -> anyhow::Result<()> {
        if !before.seccomp && plan.seccomp {
            refuse_calls().context("[process] seccomp")?;
        }
        if before.seccomp || plan.seccomp {
            self.seccomp = Seccomp::On;
        }
        Ok(())
    }

    /// Restrictions that a child process inherits.
    pub(super) fn inherited(&self) -> Inherited {
        Inherited {
            seccomp: self.seccomp == Seccomp::On,
            landlock: match self.landlock {
                Some(Confinement::Directories { abi }) => Some(abi),
                Some(Confinement::None) | None => None,
            },
        }
    }

    /// Checks that a reload can read the files of `plan`, and warns of files that requests cannot use. A missing file
    /// is reported when it is read.
    pub(super) fn check_reload(&self, plan: &Plan, written: &ConfigSource) -> anyhow::Result<()> {
        let used = confinement::of_configuration(plan, Some(written), None);
        self.check_confinement(&used, Some(written), Audience::Log)?;
        let Some((user, _)) = &self.reduced else {
            return Ok(());
        };
        let found = denied_to(user, (plan, Some(written)), &self.managed);
        if !found.unread.is_empty() {
            return Err(refusal(&mended(found.unread), Some(written), Audience::Log));
        }
        warn(&found.warnings, Some(written), Audience::Log);
        Ok(())
    }

    /// Adds advice to an error of reading the configuration when this process or its user lacks the right. If nothing
    /// could be read, only `path` is known.
    pub(super) fn explain(
        &self,
        error: anyhow::Error,
        path: &Path,
        written: Option<&ConfigSource>,
    ) -> anyhow::Error {
        let mut used = confinement::of_files(written);
        used.reads(path);
        let mut said = match self.inherited().landlock {
            Some(_) => confinement::errors_of(used.closed()),
            None => Vec::new(),
        };
        if let Some((user, _)) = &self.reduced {
            let files = written.map_or_else(|| vec![path.to_path_buf()], ConfigSource::files);
            said.extend(mended(unread(&user.to_string(), files)));
        }
        let said = said.iter().map(|trouble| format!("; {trouble}"));
        anyhow::anyhow!("{error:#}{}", said.collect::<String>())
    }

    /// Whether the process has changed its user.
    pub(super) fn are_reduced(&self) -> bool {
        self.reduced.is_some()
    }

    /// Start-up lines; empty if nothing was given up.
    pub(super) fn describe(&self) -> Vec<String> {
        let user = self.reduced.as_ref().map(|(user, rights)| {
            let ports = match rights.binds_low_ports {
                true => "CAP_NET_BIND_SERVICE only",
                false => "none",
            };
            format!("runs as {user}, {}; capabilities: {ports}", user.group())
        });
        let calls = self.inherited().seccomp.then(|| {
            format!(
                "seccomp filter: {} system calls are refused",
                refused_calls()
            )
        });
        let files = self.landlock.map(|confinement| match confinement {
            Confinement::Directories { abi } => format!(
                "Landlock (ABI {abi}): only files in directories of the configuration and the system can be opened"
            ),
            Confinement::None => {
                "Landlock: not supported by this kernel, or not allowed for this process; every file can be opened".into()
            }
        });
        user.into_iter().chain(files).chain(calls).collect()
    }

    /// The same as JSON.
    pub(super) fn report(&self) -> Value {
        let inherited = self.inherited();
        let mut said = json!({
            "reduced": false,
            "seccomp": inherited.seccomp,
            "landlock": inherited.landlock,
        });
        if let Some((user, rights)) = &self.reduced {
            let capabilities = match rights.binds_low_ports {
                true => vec!["CAP_NET_BIND_SERVICE"],
                false => Vec::new(),
            };
            said["reduced"] = true.into();
            said["user"] = user.identity.user.into();
            said["group"] = user.identity.group.into();
            said["groups"] = user.identity.groups.clone().into();
            said["capabilities"] = capabilities.into();
        }
        said
    }
}

fn mended(unread: Vec<PlanIssue>) -> Vec<PlanIssue> {
    let mended = |trouble: PlanIssue| PlanIssue {
        message: format!("{}; {UNREADABLE_ADVICE}", trouble.message),
        ..trouble
    };
    unread.into_iter().map(mended).collect()
}
