//! State of a conversion.

use std::path::{Path, PathBuf};

use crate::expression::decide::{Budget, LimitExceeded};
use crate::limits;
use crate::settings::access_log::AccessLog;
use crate::settings::group::Groups;
use crate::settings::route::Route;
use crate::settings::timeouts::Timeouts;
use crate::source::Files;
use crate::source::directive::Directive;
use crate::source::guards::Guards;
use crate::source::note::Notes;

/// Input and collected results of a conversion.
pub(super) struct Context<'f, 'a> {
    pub(super) files: &'f dyn Files,
    pub(super) notes: Notes,
    pub(super) routes: Vec<Route>,
    pub(super) groups: Groups,
    pub(super) timeouts: Timeouts<'a>,
    pub(super) log: AccessLog<'a>,
    pub(super) sections: &'a [Directive],
    /// Directory for relative file names.
    pub(super) directory: PathBuf,
    /// Whether any proxy sends client addresses to servers.
    pub(super) forwards_clients: bool,
    /// Addresses of all listeners.
    pub(super) listeners: Vec<String>,
    pub(super) budget: Budget,
    /// Treatment of rules that refuse requests and have no equivalent.
    pub(super) guards: Guards,
}

impl<'a> Context<'_, 'a> {
    pub(super) fn push(&mut self, mut route: Route) -> Result<(), LimitExceeded> {
        if self.routes.len() >= limits::ROUTES_MAX {
            return Err(LimitExceeded);
        }
        route.when = route.when.in_bytes();
        self.routes.push(route);
        Ok(())
    }

    /// The first line of a `global` section with this name.
    pub(super) fn global(&self, name: &str) -> Option<&'a Directive> {
        self.global_lines().find(|line| line.name() == name)
    }

    /// The last line that turns on this keyword of `global`, unless a later `no` line turns it off.
    pub(super) fn global_switch(&self, name: &str) -> Option<&'a Directive> {
        let is_off = |line: &Directive| line.name() == "no" && line.argument(0) == name;
        let lines = self.global_lines();
        let last = lines
            .filter(|line| line.name() == name || is_off(line))
            .last();
        last.filter(|line| !is_off(line))
    }

    fn global_lines(&self) -> impl Iterator<Item = &'a Directive> + use<'a> {
        let global = self.sections.iter();
        let global = global.filter(|section| section.name() == "global");
        global.flat_map(|section| section.inside())
    }

    /// A file name, relative to the directory that the `global` line `base` names.
    pub(super) fn path(&self, name: &str, base: &str) -> String {
        let base = self.global(base).map_or("", |line| line.argument(0));
        let path = self.directory.join(base).join(Path::new(name));
        path.to_string_lossy().into_owned()
    }

    /// The lines of a pattern file, without comments.
    pub(super) fn lines_of(&self, name: &str) -> Result<Vec<String>, String> {
        let path = self.directory.join(name);
        let text = self.files.read(&path);
        let text = text.map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(lines.map(str::to_owned).collect())
    }
}
