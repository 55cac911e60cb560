//! Every bound of a conversion, each with its reason.

/// Bytes of all files of a configuration together: that of Onrush's own, which the result has to fit.
pub const BYTES_MAX: usize = onrush_config::limits::TEXT_MAX;

/// Files of a configuration: a thousand virtual hosts with an include of their own, twice.
pub const FILES_MAX: usize = 2048;

/// Files that include each other in a chain; nginx itself ends when it has no descriptors left.
pub const INCLUDES_MAX: usize = 16;

/// Blocks within blocks: http, server, location, and locations and conditions in them. Each is a level of recursion.
pub const NESTING_MAX: usize = 32;

/// Directives of a configuration: three for each route that Onrush takes, and what surrounds them.
pub const DIRECTIVES_MAX: usize = 100_000;

/// Words of a directive: the addresses of a long list in one line, which HAProxy ends at 64.
pub const WORDS_MAX: usize = 10_000;

/// Routes that conditions may multiply to: what Onrush takes.
pub const ROUTES_MAX: usize = onrush_config::limits::ROUTES_MAX;

/// Steps of dividing requests into routes, so that conditions which contradict each other do not multiply without an end.
pub const STEPS_MAX: usize = 20 * ROUTES_MAX;

/// Characters of a directive that are shown in notes and comments: they are there to be recognised.
pub const SHOWN_MAX: usize = 100;

/// Bytes of a prefix that a route asks for beside an expression: each is a group within the one before, and expressions of Onrush
/// are nested 250 deep at most.
pub(crate) const PREFIX_MAX: usize = 200;

/// Bytes of the reasons that are said of one directive: three sentences; the line is to be read.
pub(crate) const REASONS_MAX: usize = 480;

/// Entries of a map whose keys are compared without regard to case, each by an expression: longer ones would cost each
/// request too much.
pub(crate) const KEYS_MAX: usize = 100;
