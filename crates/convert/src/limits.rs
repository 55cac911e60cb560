//! Limits of a conversion, each with its reason.

/// Maximum bytes of all files of a configuration together. Same limit as for Onrush's own configuration, because the
/// result must fit into that.
pub const BYTES_MAX: usize = onrush_config::limits::TEXT_MAX;

/// Maximum number of files of a configuration: a thousand virtual hosts with one include each, twice.
pub const FILES_MAX: usize = 2048;

/// Maximum depth of nested includes. nginx has no limit of its own; it fails when it runs out of file descriptors.
pub const INCLUDES_MAX: usize = 16;

/// Maximum depth of nested blocks: http, server, location, and nested locations and conditions. Each level is a
/// recursive call.
pub const NESTING_MAX: usize = 32;

/// Maximum number of directives of a configuration: three for each route that Onrush allows, and the blocks around
/// them.
pub const DIRECTIVES_MAX: usize = 100_000;

/// Maximum number of words of a directive, for long lists of addresses on one line. (HAProxy's own limit is 64.)
pub const WORDS_MAX: usize = 10_000;

/// Maximum number of routes of the result, the limit of Onrush.
pub const ROUTES_MAX: usize = onrush_config::limits::ROUTES_MAX;

/// Maximum number of steps of dividing requests into routes. Ends conversions whose conditions multiply but contradict
/// each other, so that they yield few routes.
pub const STEPS_MAX: usize = 20 * ROUTES_MAX;

/// Characters of a directive in notes and comments: enough to recognise it.
pub const SHOWN_MAX: usize = 100;

/// Bytes of a prefix that a route combines with an expression. Each byte adds one level of nested groups, and an
/// expression of Onrush may have at most 250 levels.
pub(crate) const PREFIX_MAX: usize = 200;

/// Bytes of all reasons in one note: about three sentences, so that the line stays readable.
pub(crate) const REASONS_MAX: usize = 480;

/// Maximum number of entries of a map with case-insensitive keys. Each becomes a regular expression, so a longer map
/// would slow down every request.
pub(crate) const KEYS_MAX: usize = 100;
