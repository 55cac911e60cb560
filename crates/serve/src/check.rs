//! What can be known to be wrong with a plan before anything is bound: what it says of files,
//! directories and certificates.

use std::fmt;
use std::sync::Arc;

use onrush_config::Plan;
use onrush_config::plan::{Action, BasicAuth, FilePath, Files, Route};
use onrush_engine::{Errno, Error, File, FileKind, Kind, Root, cpu, descriptors};
use onrush_http::{is_field_value, is_token};

use crate::accept::Arrival;
use crate::access::Users;
use crate::cores::cores;
use crate::descriptors::Shares;
use crate::encryption::Encryption;
use crate::error_page::PageFiles;
use crate::observe::trace::limits::COLLECTOR_FIELDS_BYTES_MAX;
use crate::trouble::{Trouble, Troubles, say_once};

/// Why a plan cannot be used here: everything that is wrong with its files.
#[derive(Debug)]
pub struct Unusable(pub Vec<Trouble>);

/// A line for each.
impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(|trouble| &*trouble.message).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Unusable {}

/// A plan and what its files say: all that a [`Server`](crate::Server) needs of them.
#[derive(Clone)]
pub struct Checked {
    pub(crate) plan: Plan,
    pub(crate) found: Found,
    pub(crate) arrival: Option<Arrival>,
}

impl Checked {
    /// With what is known of the CPUs that take packets. Without it the kernel chooses cores by hash, unless the plan says
    /// by CPU.
    #[must_use]
    pub fn arriving(self, arrival: Option<Arrival>) -> Self {
        Self { arrival, ..self }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the limit on open files of this process would have room for, once it is raised.
    pub fn shares(&self) -> Shares {
        let cores = cores(&self.plan, &cpu::allowed());
        Shares::new(descriptors::limit(), &self.plan, cores)
    }

    /// What can be used and is hardly meant to be, such as a certificate that has expired.
    pub fn warnings(&self) -> &[Trouble] {
        &self.found.troubles.warnings
    }
}

/// Reads the files of a plan, its certificates among them, and looks at its directories.
///
/// # Errors
/// When a server could not start with them.
pub fn check(plan: Plan) -> Result<Checked, Unusable> {
    let found = read(&plan)?;
    Ok(Checked {
        plan,
        found,
        arrival: None,
    })
}

/// What the files of a plan say. Copies share it.
#[derive(Clone)]
pub(crate) struct Found {
    /// The users of each route.
    pub(crate) users: Vec<Option<Arc<Users>>>,
    pub(crate) encryption: Encryption,
    pub(crate) page_files: PageFiles,
    /// The fields of requests to the collector of traces.
    pub(crate) collector_fields: Vec<(String, String)>,
    pub(crate) troubles: Troubles,
}

/// See [`check`].
pub(crate) fn read(plan: &Plan) -> Result<Found, Unusable> {
    let mut troubles = Troubles::default();
    let users = plan
        .routes
        .iter()
        .map(|route| read_route(route, &mut troubles))
        .collect();
    let encryption = Encryption::of(plan, &mut troubles);
    let page_files = PageFiles::read(plan, &mut troubles);
    let collector_fields = read_collector_fields(plan, &mut troubles);
    // Routes may share a file.
    say_once(&mut troubles.wrong);
    say_once(&mut troubles.warnings);
    if !troubles.wrong.is_empty() {
        return Err(Unusable(troubles.wrong));
    }
    Ok(Found {
        users,
        encryption,
        page_files,
        collector_fields,
        troubles,
    })
}

/// The users of a route that has some; its directory is only opened.
fn read_route(route: &Route, troubles: &mut Troubles) -> Option<Arc<Users>> {
    if let Action::Files(Files { root, .. }) = &route.action
        && let Err(error) = Root::open(root)
    {
        let message = cannot_serve(&root.display().to_string(), &error);
        troubles.wrong.push(Trouble::with(root, message));
    }
    if let Action::RespondFile { file, .. } = &route.action
        && let Err(why) = look_at_file(file)
    {
        troubles.wrong.push(Trouble::with(file, why));
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

/// The fields of requests to the collector: those of the plan, and those of its file.
fn read_collector_fields(plan: &Plan, troubles: &mut Troubles) -> Vec<(String, String)> {
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
            troubles.wrong.push(Trouble::with(file, message));
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
                // What stands there may be secret.
                let line = number + 1;
                let message = format!(
                    "line {line} of {shown} is no field for the collector: expected Name: value"
                );
                troubles.wrong.push(Trouble::with(file, message));
            }
        }
    }
    fields
}

/// Those that stand in the configuration itself are known to be good.
fn trouble_with_users(auth: &BasicAuth, message: String) -> Trouble {
    Trouble {
        place: auth.file.as_ref().and_then(|file| file.place().cloned()),
        message,
    }
}

/// Whether a file can be served by now.
fn look_at_file(path: &FilePath) -> Result<(), String> {
    let shown = path.display();
    match File::open(path) {
        Ok(file) if file.metadata().kind == FileKind::Regular => Ok(()),
        Ok(_) => Err(format!("cannot serve the file {shown}: it is none")),
        Err(error) => Err(match error.kind {
            Kind::Os(Errno::NOENT) => format!("cannot serve the file {shown}: there is none"),
            Kind::Os(Errno::ACCESS) => format!("cannot serve the file {shown}: permission denied"),
            _ => format!("cannot serve the file {shown}: {error}"),
        }),
    }
}

/// Why a directory cannot be opened.
pub(crate) fn cannot_serve(path: &str, error: &Error) -> String {
    let why = match error.kind {
        Kind::Os(Errno::NOENT) => "there is none",
        Kind::Os(Errno::NOTDIR) => "it is a file",
        Kind::Os(Errno::ACCESS) => "permission denied",
        _ => return format!("cannot serve the directory {path}: {error}"),
    };
    format!("cannot serve the directory {path}: {why}")
}
