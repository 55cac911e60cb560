//! `[process]`: user and Landlock restriction of the process.

use std::path::PathBuf;

use crate::diagnostic::Diagnostics;
use crate::plan::{Account, Landlock, Process, RunAs};
use crate::section::{Keys, Kind, Section};
use crate::value::{Invalid, parse_account, parse_user};

const KEYS: &[&str] = &[
    "user",
    "group",
    "seccomp",
    "landlock",
    "landlock_read",
    "landlock_write",
];

const USER: Kind<Account> = Kind {
    expected: "a user such as \"www-data\", or its number",
    parse: parse_user,
};

const GROUP: Kind<Account> = Kind {
    expected: "a group such as \"www-data\", or its number",
    parse: parse_account,
};

const DIRECTORIES: Kind<PathBuf> = Kind {
    expected: "an absolute directory such as [\"/srv\"]",
    parse: parse_directory,
};

pub(super) fn read_process(file: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Process {
    const EXPECTED: &str = "a table such as { user = \"www-data\" }";
    let keys = Keys::new(KEYS);
    let section = file
        .value("process")
        .and_then(|value| Section::of("[process]", value, EXPECTED, keys, findings));
    let Some(section) = section else {
        return Process::default();
    };
    let user = section.read_number("user", USER, findings);
    let group = section.read_number("group", GROUP, findings);
    if group.is_some() && !section.has("user") {
        let why = "group has no effect without a user: expected user = \"www-data\" as well";
        findings.error(section.place("group"), why);
    }
    Process {
        landlock: read_landlock(&section, findings),
        seccomp: section.truth("seccomp", findings).unwrap_or(false),
        run_as: user.map(|user| RunAs { user, group }),
    }
}

fn read_landlock(section: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<Landlock> {
    let is_wished = section.truth("landlock", findings).unwrap_or(false);
    if !is_wished {
        let keys = ["landlock_read", "landlock_write"];
        section.warn_ignored(&keys, "without landlock = true", findings);
    }
    let read = section.read_list("landlock_read", DIRECTORIES, findings);
    let write = section.read_list("landlock_write", DIRECTORIES, findings);
    is_wished.then(|| Landlock {
        read: read.unwrap_or_default(),
        write: write.unwrap_or_default(),
    })
}

fn parse_directory(text: &str) -> Result<PathBuf, Invalid> {
    match text.starts_with('/') && !text.contains('\0') {
        true => Ok(text.into()),
        false => Err(Invalid::new(format!(
            "{text:?} is not an absolute directory: expected {}",
            DIRECTORIES.expected
        ))),
    }
}
