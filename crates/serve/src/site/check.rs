//! Checks the files, directories and certificates of a plan before anything is bound.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_config::Plan;
use onrush_config::plan::{
    Action, Address, Admin, BasicAuth, FilePath, Files, Listener, LogTarget, Route,
};
use onrush_engine::{Error, File, FileKind, Kind, Root, cpu, descriptors};
use onrush_http::{is_field_value, is_token};
use rustix::fs::{Access, OFlags, access};
use rustix::io::Errno;

use crate::exchange::access::users::Users;
use crate::observe::trace::limits::COLLECTOR_FIELDS_BYTES_MAX;
use crate::rules::error_page::PageFiles;
use crate::site::accept::{self, ReceivingCpus};
use crate::site::cores::{cores, placement};
use crate::site::encryption::Encryption;
use crate::site::permissions::directory_of;
use crate::site::start_error::StartError;
use crate::worker::descriptor_shares::Shares;
use crate::worker::plan_issue::{PlanIssue, PlanIssues, deduplicate};

/// All errors in the files of a plan.
#[derive(Debug)]
pub struct PlanErrors(pub Vec<PlanIssue>);

/// One error per line.
impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(|trouble| &*trouble.message).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for PlanErrors {}

/// A plan and the contents of its files: all that a [`Server`](crate::Server) needs of them.
#[derive(Clone)]
pub struct Checked {
    pub(crate) plan: Plan,
    pub(crate) found: PlanFiles,
    pub(crate) arrival: Option<ReceivingCpus>,
}

impl Checked {
    /// Sets the CPUs that receive packets. If they are unknown, connections are distributed by hash, unless the plan
    /// requires distribution by CPU.
    #[must_use]
    pub fn with_receiving_cpus(self, arrival: Option<ReceivingCpus>) -> Self {
        Self { arrival, ..self }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How the limit on open files of this process will be divided, after it is raised.
    pub fn shares(&self) -> Shares {
        let cores = cores(&self.plan, &cpu::allowed());
        Shares::new(descriptors::limit(), &self.plan, cores)
    }

    /// Reasons why a server cannot start with this plan here that [`check`] does not find: an access log that it cannot
    /// open, or Unix sockets that it cannot create. Creates and changes nothing. Not for a running server: it has them
    /// open, and may run as another user by now.
    pub fn start_errors(&self) -> Vec<PlanIssue> {
        let access_log = self.plan.access_log.as_ref().and_then(|log| {
            let LogTarget::File(path) = &log.to else {
                return None;
            };
            let why = why_not_appended(path)?;
            Some(format!(
                "cannot open the access log {}: {why}",
                path.display()
            ))
        });
        let sockets = self.plan.listen.iter().filter_map(|listen| {
            let Address::Unix(path) = &listen.address else {
                return None;
            };
            let why = why_not_bound(path)?;
            Some(format!("cannot listen on {}: {why}", listen.address))
        });
        let admin = match &self.plan.admin {
            Admin::Unix(path) => why_not_bound(path).map(|why| {
                let shown = path.display();
                format!("cannot listen on [admin] unix:{shown}: {why}")
            }),
            Admin::Default | Admin::Off | Admin::Tcp { .. } => None,
        };
        let placed = self.why_not_placed();
        let trouble = |message| PlanIssue {
            place: None,
            message,
        };
        let all = access_log.into_iter().chain(sockets).chain(admin);
        all.chain(placed).map(trouble).collect()
    }

    /// Why the cores cannot run here, or connections cannot be distributed as configured.
    fn why_not_placed(&self) -> Option<String> {
        let cpus = match placement(&self.plan) {
            Ok(cpus) => cpus,
            Err(why) => return Some(StartError::Cpus(why).to_string()),
        };
        let chosen = accept::choose(self.plan.accept, &cpus, &self.plan.listen, None, None);
        chosen.err().map(|why| StartError::Accept(why).to_string())
    }

    /// Warnings about likely mistakes, such as an expired certificate.
    pub fn warnings(&self) -> &[PlanIssue] {
        &self.found.troubles.warnings
    }
}

/// Reads the files of a plan, including certificates, and checks its directories.
///
/// # Errors
/// If a server could not start with them.
pub fn check(plan: Plan) -> Result<Checked, PlanErrors> {
    let found = read(&plan)?;
    Ok(Checked {
        plan,
        found,
        arrival: None,
    })
}

/// Contents of the files of a plan. Clones share them.
#[derive(Clone)]
pub(crate) struct PlanFiles {
    pub(crate) users: Vec<Option<Arc<Users>>>,
    pub(crate) encryption: Encryption,
    pub(crate) page_files: PageFiles,
    pub(crate) collector_fields: Vec<(String, String)>,
    pub(crate) troubles: PlanIssues,
}

/// See [`check`].
pub(crate) fn read(plan: &Plan) -> Result<PlanFiles, PlanErrors> {
    let mut troubles = PlanIssues::default();
    let users = plan
        .routes
        .iter()
        .map(|route| read_route(route, &mut troubles))
        .collect();
    let encryption = Encryption::of(plan, &mut troubles);
    let page_files = PageFiles::read(plan, &mut troubles);
    let collector_fields = read_collector_fields(plan, &mut troubles);
    troubles.wrong.extend(same_sockets(plan));
    // Routes may share a file.
    deduplicate(&mut troubles.wrong);
    deduplicate(&mut troubles.warnings);
    if !troubles.wrong.is_empty() {
        return Err(PlanErrors(troubles.wrong));
    }
    Ok(PlanFiles {
        users,
        encryption,
        page_files,
        collector_fields,
        troubles,
    })
}

/// Reports each Unix socket that is configured by two paths, through `..` or a symbolic link.
fn same_sockets(plan: &Plan) -> Vec<PlanIssue> {
    let of_listener = |listen: &Listener| match &listen.address {
        Address::Unix(path) => Some(path.clone()),
        Address::Tcp(_) => None,
    };
    let of_admin = match &plan.admin {
        Admin::Unix(path) => Some(path.clone()),
        Admin::Default | Admin::Off | Admin::Tcp { .. } => None,
    };
    let paths = plan.listen.iter().filter_map(of_listener).chain(of_admin);
    let mut places: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut same = Vec::new();
    for path in paths {
        if let Some(first) = places.insert(resolved(&path), path.clone()) {
            let (path, first) = (path.display(), first.display());
            same.push(PlanIssue {
                place: None,
                message: format!(
                    "unix:{path} and unix:{first} are the same socket: configure different ones"
                ),
            });
        }
    }
    same
}

/// The path without symbolic links and `..`, if its directory exists.
fn resolved(path: &Path) -> PathBuf {
    let of_file = fs::canonicalize(path);
    let resolved = of_file.or_else(|error| match path.file_name() {
        Some(name) => fs::canonicalize(directory_of(path)).map(|directory| directory.join(name)),
        None => Err(error),
    });
    resolved.unwrap_or_else(|_| path.to_path_buf())
}

/// Reads the users of a route, if it has any, and checks that its directory or file can be opened.
fn read_route(route: &Route, troubles: &mut PlanIssues) -> Option<Arc<Users>> {
    if let Action::Files(Files { root, .. }) = &route.action
        && let Err(error) = Root::open(root)
    {
        let message = cannot_serve(&root.display().to_string(), &error);
        troubles.wrong.push(PlanIssue::with(root, message));
    }
    if let Action::RespondFile { file, .. } = &route.action
        && let Err(why) = look_at_file(file)
    {
        troubles.wrong.push(PlanIssue::with(file, why));
    }
    let auth = route.access.basic_auth.as_ref()?;
    let mut warnings = Vec::new();
    let users = Users::read(auth, &mut warnings);
    let of_file = |message| trouble_with_users(auth, message);
    troubles.warnings.extend(warnings.into_iter().map(of_file));
    match users {
        Ok(users) => Some(Arc::new(users)),
        Err(lines) => {
            troubles.wrong.extend(lines.into_iter().map(of_file));
            None
        }
    }
}

fn read_collector_fields(plan: &Plan, troubles: &mut PlanIssues) -> Vec<(String, String)> {
    let Some(tracing) = &plan.tracing else {
        return Vec::new();
    };
    let mut fields = tracing.collector.headers.clone();
    let Some(file) = &tracing.collector.headers_file else {
        return fields;
    };
    let shown = file.display();
    let text = match onrush_file::read_text(file, COLLECTOR_FIELDS_BYTES_MAX) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("cannot read the fields for the collector {shown}: {error}");
            troubles.wrong.push(PlanIssue::with(file, message));
            return fields;
        }
    };
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let field = line
            .split_once(':')
            .map(|(name, value)| (name, value.trim()));
        let field = field
            .filter(|(name, value)| is_token(name.as_bytes()) && is_field_value(value.as_bytes()));
        match field {
            Some((name, value)) => fields.push((name.to_owned(), value.to_owned())),
            None => {
                // The line may contain a secret.
                let line = number + 1;
                let message =
                    format!("line {line} of {shown} is not a header field: expected Name: value");
                troubles.wrong.push(PlanIssue::with(file, message));
            }
        }
    }
    fields
}

/// Users in the configuration itself have been validated already, so the error is in the file.
fn trouble_with_users(auth: &BasicAuth, message: String) -> PlanIssue {
    PlanIssue {
        place: auth.file.as_ref().and_then(|file| file.place().cloned()),
        message,
    }
}

/// Why a file cannot be opened for appending, or created if it does not exist; `None` if it can.
fn why_not_appended(path: &Path) -> Option<String> {
    let mut options = OpenOptions::new();
    // Do not wait for the reader of a pipe.
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    match options.append(true).open(path) {
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => why_not_made(path),
        Err(error) => Some(error.to_string()),
    }
}

/// Why no Unix socket can be bound to a path. The file of a socket is replaced.
fn why_not_bound(path: &Path) -> Option<String> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            Some("a file is there that is not a socket".into())
        }
        Ok(_) | Err(_) => why_not_made(path),
    }
}

fn why_not_made(path: &Path) -> Option<String> {
    let directory = directory_of(path);
    let shown = directory.display();
    match access(directory, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if directory.is_dir() => None,
        Ok(()) => Some(format!("{shown} is not a directory")),
        Err(Errno::NOENT) => Some(format!("the directory {shown} does not exist")),
        Err(error) => Some(format!("cannot create a file in {shown}: {error}")),
    }
}

/// Whether a file can be served.
fn look_at_file(path: &FilePath) -> Result<(), String> {
    let shown = path.display();
    match File::open(path) {
        Ok(file) if file.metadata().kind == FileKind::Regular => Ok(()),
        Ok(_) => Err(format!(
            "cannot serve the file {shown}: it is not a regular file"
        )),
        Err(error) => Err(match error.kind {
            Kind::Os(onrush_engine::Errno::NOENT) => {
                format!("cannot serve the file {shown}: it does not exist")
            }
            Kind::Os(onrush_engine::Errno::ACCESS) => {
                format!("cannot serve the file {shown}: permission denied")
            }
            _ => format!("cannot serve the file {shown}: {error}"),
        }),
    }
}

/// The message for a directory that cannot be opened.
pub(crate) fn cannot_serve(path: &str, error: &Error) -> String {
    let why = match error.kind {
        Kind::Os(onrush_engine::Errno::NOENT) => "it does not exist",
        Kind::Os(onrush_engine::Errno::NOTDIR) => "it is a file",
        Kind::Os(onrush_engine::Errno::ACCESS) => "permission denied",
        _ => return format!("cannot serve the directory {path}: {error}"),
    };
    format!("cannot serve the directory {path}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors of `onrush check` for an access log at this path.
    fn objections(log: &Path) -> Vec<String> {
        let text = format!(
            "[[route]]\nsynthetic = true\n[log]\naccess = \"{}\"",
            log.display()
        );
        let parsed = onrush_config::parse(&text, Path::new("onrush.toml")).expect("it is valid");
        let checked = check(parsed.plan).expect("no file is read");
        let found = checked.start_errors();
        found.into_iter().map(|trouble| trouble.message).collect()
    }

    #[test]
    fn same_socket_under_two_paths_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = directory.path().join("real");
        fs::create_dir(&real).expect("it can be made");
        std::os::unix::fs::symlink(&real, directory.path().join("link")).expect("a link");
        let plan = |one: &str, other: &str, admin: &str| {
            let shown = directory.path().display();
            let text = format!(
                "[[listen]]\naddress = \"unix:{shown}/{one}\"\n[[listen]]\naddress = \"unix:{shown}/{other}\"\n\
                 [admin]\naddress = \"unix:{shown}/{admin}\"\n[[route]]\nsynthetic = true\n"
            );
            onrush_config::parse(&text, Path::new("onrush.toml")).expect("it is valid")
        };
        for (one, other, admin, wanted) in [
            ("real/a", "real/b", "real/c", 0),
            ("real/a", "link/a", "c", 1),
            ("real/a", "real/../real/a", "c", 1),
            ("none/a", "none/b", "c", 0),
            ("real/a", "real/b", "link/a", 1),
        ] {
            let found = check(plan(one, other, admin).plan).err();
            let count = found.map_or(0, |found| found.0.len());
            assert_eq!(count, wanted, "{one} {other} {admin}");
        }
    }

    #[test]
    fn missing_log_directory_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("access.log");
        assert_eq!(objections(&log), Vec::<String>::new());
        assert!(!log.exists());
        std::fs::write(&log, "before\n").expect("it is ours");
        assert_eq!(objections(&log), Vec::<String>::new());
        assert_eq!(std::fs::read(&log).expect("it is ours"), b"before\n");
        let beneath = log.join("access.log");
        assert_eq!(objections(&beneath).len(), 1);
        let missing = directory.path().join("missing");
        let why = format!(
            "cannot open the access log {0}/access.log: the directory {0} does not exist",
            missing.display()
        );
        assert_eq!(objections(&missing.join("access.log")), [why]);
    }
}
