//! `[process]`: who the server is to the system once it is ready.

use crate::diagnostic::Findings;
use crate::plan::{Account, Process, RunAs};
use crate::section::{Keys, Kind, Section};
use crate::value::{parse_account, parse_user};

const USER: Kind<Account> = Kind {
    expected: "a user such as \"www-data\", or its number",
    parse: parse_user,
};

const GROUP: Kind<Account> = Kind {
    expected: "a group such as \"www-data\", or its number",
    parse: parse_account,
};

pub(super) fn read_process(file: &Section<'_, '_>, findings: &mut Findings<'_>) -> Process {
    const EXPECTED: &str = "a table such as { user = \"www-data\" }";
    let keys = Keys::new(&["user", "group", "seccomp"]);
    let section = file
        .value("process")
        .and_then(|value| Section::of("[process]", value, EXPECTED, keys, findings));
    let Some(section) = section else {
        return Process::default();
    };
    let user = section.read_number("user", USER, findings);
    let group = section.read_number("group", GROUP, findings);
    if group.is_some() && !section.has("user") {
        let why = "group has no meaning without a user: expected user = \"www-data\" beside it";
        findings.error(section.place("group"), why);
    }
    Process {
        seccomp: section.truth("seccomp", findings).unwrap_or(false),
        run_as: user.map(|user| RunAs { user, group }),
    }
}
