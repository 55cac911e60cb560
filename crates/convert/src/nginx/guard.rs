//! Encoded slashes. nginx takes `%2F` for a slash when it looks for a location; Onrush leaves it as it is, so that a path
//! with it may miss the route of a location that refuses requests, and be forwarded by another one.

use crate::condition::Path;
use crate::decide::TooMany;
use crate::document::Value;
use crate::limits;
use crate::pcre::with_encoded_slashes;
use crate::route::{Response, Route};

/// Puts a route before each one that does not let everybody in, which refuses what nginx takes for the same paths. Where
/// nothing is forwarded there is nobody who would take an encoded slash for one.
///
/// # Errors
/// When there are more routes than Onrush takes.
pub(super) fn guarded(routes: Vec<Route>) -> Result<Vec<Route>, TooMany> {
    let forwards = |route: &Route| matches!(route.response, Response::Forward(_));
    if !routes.iter().any(forwards) {
        return Ok(routes);
    }
    let mut all = Vec::new();
    for route in routes {
        if refuses(&route) {
            all.extend(refusals(&route));
        }
        all.push(route);
        if all.len() > limits::ROUTES_MAX {
            return Err(TooMany);
        }
    }
    Ok(all)
}

/// Whether a route does not give everybody what there is.
fn refuses(route: &Route) -> bool {
    let is_refusal = matches!(route.response, Response::Respond { status, .. } if status >= 400);
    let is_guard = |(key, _): &(String, Value)| matches!(&**key, "allow" | "deny" | "basic_auth");
    is_refusal || route.keys.iter().any(is_guard)
}

/// The routes that refuse paths like those of another one, with a slash that is encoded.
fn refusals(route: &Route) -> impl Iterator<Item = Route> {
    let own = match route.when.path() {
        // In either of the two it may be.
        Path::Within(prefix, pattern) => {
            vec![Path::Prefix(prefix.clone()), Path::Pattern(pattern.clone())]
        }
        path => vec![path.clone()],
    };
    own.into_iter().filter_map(|own| {
        let wide = with_encoded_slashes(&own.as_pattern())?;
        // One that is too large for Onrush: every path with an encoded slash.
        let path = Path::pattern(&wide).unwrap_or(Path::Pattern("%2[Ff]".to_owned()));
        let mut refusal = Route::new(route.when.with_path(path), Response::status(403));
        refusal.comments.clone_from(&route.comments);
        let why = "nginx takes an encoded slash for one; Onrush does not, and refuses it";
        refusal.comments.push(why.to_owned());
        refusal.put("not", Value::table([("path", Value::Text(own.written()?))]));
        Some(refusal)
    })
}
