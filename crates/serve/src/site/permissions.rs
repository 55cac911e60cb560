//! Files of a plan that a server may not access after it has changed its user. Asks the kernel with the rights of the
//! calling thread.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use onrush_config::Plan;
use onrush_config::plan::{
    Action, Address, Admin, Certificate, ClientAuthorities, FilePath, LogTarget, ServerAddress,
    Verify,
};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::worker::plan_issue::{PlanIssue, deduplicate};

/// Denied uses of a plan's files.
#[derive(Default)]
pub struct Denied {
    /// Errors that prevent a start.
    pub wrong: Vec<PlanIssue>,
    /// Unreadable files that would make a reload fail.
    pub unread: Vec<PlanIssue>,
    /// Other uses that would fail.
    pub warnings: Vec<PlanIssue>,
}

/// Whether this thread lacks permission to read a file. A missing file does not count.
pub fn is_unreadable(path: &Path) -> bool {
    is_denied(path, Access::READ_OK)
}

/// Whether this thread lacks permission to use a file in this way. Other failures do not count.
fn is_denied(path: &Path, how: Access) -> bool {
    matches!(
        access(path, how),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS)
    )
}

/// Checks all files of a plan with the rights of this thread; messages call its user `who`. The files of `managed`
/// sockets belong to a service manager and are skipped.
pub fn denied(plan: &Plan, who: &str, managed: &[PathBuf]) -> Denied {
    let mut denied = Denied::default();
    for file in tls_files(plan).chain(plan.startup_files()) {
        if is_denied(file, Access::READ_OK) {
            let message = format!("{who} may not read {}", file.display());
            denied.unread.push(PlanIssue::with(file, message));
        }
    }
    for route in &plan.routes {
        if let Action::RespondFile { file, .. } = &route.action
            && is_denied(file, Access::READ_OK)
        {
            let shown = file.display();
            let message = format!("{who} may not read {shown}: requests for it will be refused");
            denied.warnings.push(PlanIssue::with(file, message));
        }
    }
    for route in &plan.routes {
        if let Action::Files(files) = &route.action
            && is_denied(&files.root, Access::EXEC_OK)
        {
            let shown = files.root.display();
            let message =
                format!("{who} may not enter {shown}: requests for its files will be refused");
            denied.warnings.push(PlanIssue::with(&files.root, message));
        }
    }
    of_sockets(plan, who, managed, &mut denied);
    of_log(plan, who, &mut denied);
    deduplicate(&mut denied.unread);
    deduplicate(&mut denied.warnings);
    denied
}

/// Certificates, keys, OCSP responses, authorities and revocation lists.
pub(crate) fn tls_files(plan: &Plan) -> impl Iterator<Item = &FilePath> {
    let tls = plan.listen.iter().filter_map(|listen| listen.tls.as_ref());
    let of_clients = tls.flat_map(|tls| {
        let pairs = tls.certificates.iter().filter_map(|pair| match pair {
            Certificate::Files {
                certificate,
                key,
                staple,
            } => Some([Some(certificate), Some(key), staple.as_ref()]),
            Certificate::SelfSigned => None,
        });
        let pairs = pairs.flatten();
        let of_authorities = tls.authorities().flat_map(ClientAuthorities::files);
        pairs.flatten().chain(of_authorities)
    });
    let collector = plan.tracing.iter().map(|tracing| &tracing.collector);
    let of_groups = plan.upstreams.iter().filter_map(|group| group.tls.as_ref());
    let tls = of_groups.chain(collector.filter_map(|collector| collector.tls.as_ref()));
    let of_servers = tls.flat_map(|tls| {
        let pair = tls.certificate.iter();
        let authorities = match &tls.verify {
            Verify::File(file) => Some(file),
            Verify::System | Verify::Insecure => None,
        };
        let pair = pair.flat_map(|(certificate, key)| [certificate, key]);
        pair.chain(authorities)
    });
    of_clients.chain(of_servers)
}

/// Checks files of Unix sockets: the process connects to servers' files, and removes listeners' files at its end.
fn of_sockets(plan: &Plan, who: &str, managed: &[PathBuf], denied: &mut Denied) {
    let mut warn = |message: String| {
        let place = None;
        denied.warnings.push(PlanIssue { place, message });
    };
    for server in plan.upstreams.iter().flat_map(|group| &group.servers) {
        if let ServerAddress::Unix(path) = &server.address
            && is_denied(path, Access::WRITE_OK)
        {
            let shown = path.display();
            warn(format!(
                "{who} may not connect to unix:{shown}: requests for this server will fail"
            ));
        }
    }
    let ours = plan
        .listen
        .iter()
        .filter_map(|listen| match &listen.address {
            Address::Unix(path) => Some(path),
            Address::Tcp(_) => None,
        });
    for path in ours.filter(|path| !managed.contains(path)) {
        if is_denied(directory_of(path), WRITE_INTO) {
            let shown = path.display();
            warn(format!(
                "{who} may not write to the directory of unix:{shown}: the socket file will remain after the server ends; use a directory of that user"
            ));
        }
    }
    match &plan.admin {
        Admin::Unix(path) if is_denied(directory_of(path), WRITE_INTO) => {
            let shown = path.display();
            warn(format!(
                "{who} may not write to the directory of [admin] unix:{shown}: the admin interface cannot be opened after an upgrade; use a directory of that user"
            ));
        }
        Admin::Tcp { token_file, .. } if is_denied(token_file, Access::READ_OK) => {
            let shown = token_file.display();
            warn(format!(
                "{who} may not read [admin] token_file {shown}: an upgrade will fail"
            ));
        }
        Admin::Default | Admin::Off | Admin::Unix(_) | Admin::Tcp { .. } => {}
    }
}

/// Permissions needed to create and remove files in a directory.
const WRITE_INTO: Access = Access::WRITE_OK.union(Access::EXEC_OK);

fn of_log(plan: &Plan, who: &str, denied: &mut Denied) {
    let trouble = |message| PlanIssue {
        place: None,
        message,
    };
    match plan.access_log.as_ref().map(|log| &log.to) {
        Some(LogTarget::File(path)) => {
            let shown = path.display();
            let is_there = access(path, Access::EXISTS) != Err(Errno::NOENT);
            let directory = directory_of(path);
            let cannot_make = is_denied(directory, WRITE_INTO);
            let is_nobodys = !is_there && cannot_make && !is_of_root(directory);
            if is_nobodys || is_there && is_denied(path, Access::WRITE_OK) {
                denied.wrong.push(trouble(format!(
                    "{who} may not write the access log {shown}; give it to that user (chown)"
                )));
            } else if cannot_make {
                denied.warnings.push(trouble(format!(
                    "{who} may not create files in the directory of the access log {shown}: a program that rotates it (logrotate) must create the next file for that user"
                )));
            }
        }
        Some(LogTarget::SyslogUnix(path)) if is_denied(path, Access::WRITE_OK) => {
            let shown = path.display();
            denied.warnings.push(trouble(format!(
                "{who} may not send to the syslog {shown}: lines will be lost"
            )));
        }
        _ => {}
    }
}

/// Whether only root can create, move or replace anything in a directory: no part of its path is a link, and all
/// directories on the path belong to root.
pub(crate) fn is_of_root(directory: &Path) -> bool {
    let Ok(whole) = std::path::absolute(directory) else {
        return false;
    };
    let of_root = |part: &Path| {
        let found = std::fs::symlink_metadata(part).ok();
        let found = found.filter(|found| found.is_dir() && found.uid() == 0);
        found.map(|found| found.mode())
    };
    let is_closed = |mode: u32| mode & 0o022 == 0;
    // In a sticky directory such as /tmp, other users cannot move root's files.
    let is_kept = |mode: u32| is_closed(mode) || mode & 0o1000 != 0;
    of_root(&whole).is_some_and(is_closed)
        && whole
            .ancestors()
            .skip(1)
            .all(|part| of_root(part).is_some_and(is_kept))
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    }
}
