//! Places of routes in the files, for messages about them: a plan does not contain places.

use std::path::PathBuf;

use crate::merge::merged;
use crate::sources::Sources;

/// Place of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePlace {
    /// File, if there are several.
    pub file: Option<PathBuf>,
    /// Line, from 1.
    pub line: usize,
}

/// Returns the place of each `[[route]]`, in order; empty if there are none.
pub fn route_places(sources: &Sources) -> Vec<RoutePlace> {
    let merged = merged(sources);
    let routes = merged.table.get("route");
    let routes = routes.and_then(|routes| routes.get_ref().as_array());
    let tables = routes.into_iter().flat_map(|routes| routes.iter());
    let place = |table: &toml::Spanned<toml::de::DeValue<'_>>| {
        let span = table.span();
        let file = sources.file(&span);
        RoutePlace {
            file: sources.has_several_files().then(|| file.path().to_owned()),
            line: sources.line(&span),
        }
    };
    tables.map(place).collect()
}
