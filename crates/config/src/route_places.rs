//! Where the routes of a configuration stand, for whoever has to say which of them is meant: a plan does not remember.

use std::path::PathBuf;

use crate::merged::merged;
use crate::sources::Sources;

/// Where a route begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePlace {
    /// The file, where there are several.
    pub file: Option<PathBuf>,
    /// Its line there, from 1.
    pub line: usize,
}

/// The place of each `[[route]]` of a configuration, in the order in which they are tried; none where there are no such
/// tables.
pub fn route_places(sources: &Sources) -> Vec<RoutePlace> {
    let merged = merged(sources);
    let routes = merged.table.get("route");
    let routes = routes.and_then(|routes| routes.get_ref().as_array());
    let tables = routes.into_iter().flat_map(|routes| routes.iter());
    let place = |table: &toml::Spanned<toml::de::DeValue<'_>>| {
        let span = table.span();
        let file = sources.file(&span);
        RoutePlace {
            file: sources.are_several().then(|| file.path().to_owned()),
            line: sources.line(&span),
        }
    };
    tables.map(place).collect()
}
