//! What a conversion has made so far.

use std::path::{Path, PathBuf};

use crate::expression::decide::{Budget, TooMany};
use crate::limits;
use crate::settings::access_log::AccessLog;
use crate::settings::group::Groups;
use crate::settings::route::Route;
use crate::settings::timeouts::Timeouts;
use crate::source::Files;
use crate::source::directive::Directive;
use crate::source::guards::Guards;
use crate::source::note::Notes;

/// Everything that parts of the conversion add to.
pub(super) struct Work<'f, 'a> {
    pub(super) files: &'f dyn Files,
    pub(super) notes: Notes,
    pub(super) routes: Vec<Route>,
    pub(super) groups: Groups,
    pub(super) timeouts: Timeouts<'a>,
    pub(super) log: AccessLog<'a>,
    pub(super) sections: &'a [Directive],
    /// What relative names are taken from.
    pub(super) directory: PathBuf,
    /// Whether any proxy tells servers of clients.
    pub(super) forwards_clients: bool,
    /// The addresses that are listened on.
    pub(super) listeners: Vec<String>,
    pub(super) budget: Budget,
    /// How to handle rules that refuse requests and have no counterpart.
    pub(super) guards: Guards,
}

impl<'a> Work<'_, 'a> {
    /// Adds a route.
    ///
    /// # Errors
    /// When there are more than Onrush takes.
    pub(super) fn push(&mut self, mut route: Route) -> Result<(), TooMany> {
        if self.routes.len() >= limits::ROUTES_MAX {
            return Err(TooMany);
        }
        route.when = route.when.in_bytes();
        self.routes.push(route);
        Ok(())
    }

    /// Lines of the section `global` that begin with this word.
    pub(super) fn global(&self, name: &str) -> Option<&'a Directive> {
        let global = self
            .sections
            .iter()
            .filter(|section| section.name() == "global");
        let mut lines = global.flat_map(|section| section.inside());
        lines.find(|line| line.name() == name)
    }

    /// The file that is named, below what `base` of the section `global` says.
    pub(super) fn path(&self, name: &str, base: &str) -> String {
        let base = self.global(base).map_or("", |line| line.argument(0));
        let path = self.directory.join(base).join(Path::new(name));
        path.to_string_lossy().into_owned()
    }

    /// The lines of a file of patterns, without comments.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn lines_of(&self, name: &str) -> Result<Vec<String>, String> {
        let path = self.directory.join(name);
        let text = self.files.read(&path);
        let text = text.map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(lines.map(str::to_owned).collect())
    }
}
