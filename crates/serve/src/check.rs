//! What can be known to be wrong with a plan before anything is bound: what it says of files,
//! directories and certificates.

use std::fmt;
use std::sync::Arc;

use onrush_config::Plan;
use onrush_config::plan::Action;
use onrush_engine::{Errno, Error, Kind, Root};

use crate::access::Users;
use crate::tls::Encryption;

/// Why a plan cannot be used here: everything that is wrong with its files, each with its name.
#[derive(Debug)]
pub struct Unusable(pub Vec<String>);

/// A line for each.
impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Unusable {}

/// Looks at everything that [`Server::start`](crate::Server::start) looks at before it binds an address, and returns what
/// deserves a warning.
///
/// # Errors
/// When a server could not start with it.
pub fn check(plan: &Plan) -> Result<Vec<String>, Unusable> {
    read(plan).map(|found| found.warnings)
}

/// What the files of a plan say.
pub(crate) struct Found {
    /// The users of each route.
    pub(crate) users: Vec<Option<Arc<Users>>>,
    pub(crate) encryption: Encryption,
    pub(crate) warnings: Vec<String>,
}

/// Reads the files of a plan, its certificates among them, and opens its directories.
pub(crate) fn read(plan: &Plan) -> Result<Found, Unusable> {
    let (mut users, mut warnings, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for route in &plan.routes {
        if let Action::Files { root, .. } = &route.action
            && let Err(error) = Root::open(root)
        {
            wrong.push(cannot_serve(&root.display().to_string(), &error));
        }
        let read = route
            .access
            .basic_auth
            .as_ref()
            .map(|auth| Users::read(auth, &mut warnings));
        users.push(match read.transpose() {
            Ok(users) => users.map(Arc::new),
            Err(lines) => {
                wrong.extend(lines);
                None
            }
        });
    }
    let encryption = Encryption::of(plan, &mut warnings, &mut wrong);
    if wrong.is_empty() {
        // Routes may share a file.
        warnings.sort();
        warnings.dedup();
        return Ok(Found {
            users,
            encryption,
            warnings,
        });
    }
    wrong.dedup();
    Err(Unusable(wrong))
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
