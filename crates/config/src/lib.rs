//! Configuration: text -> sections -> a validated [`Plan`]. Pure: it reads no file, resolves no name and inspects no directory. Texts
//! come in ([`Sources`]); a plan or every error comes out.
//!
//! Each step has a type: the text, `Section` (the written values with their places) and [`Plan`] (their meaning). One-liners of the command line
//! make the same plan with the same parse functions: [`Plan::one_liner`], [`address`], [`value`].
//!
//! `sources.rs` has the texts of several files, with places that count through all of them; `include.rs` finds which
//! files there are, by a reader that the caller passes; `merged.rs` makes one table of them. `read/` has one file for
//! each section. `address.rs` and `value.rs` also read flags, so that a flag and a key report the same mistake in the
//! same words.
//!
//! # Invariants
//!
//! - A plan is valid: every value is in range and every reference leads to something. Whether its files exist
//!   is checked elsewhere.
//! - All mistakes are reported at once, in the order of the text, each with line, column and the nearest valid
//!   spelling. That is why the spanned TOML is read by hand: derived code ends at the first error.
#![forbid(unsafe_code)]

pub mod plan;

pub mod changes;
pub mod masked;

mod read;
mod section;

mod merged;
mod route_places;

mod extent;
mod include;
mod sources;
mod written;

pub mod address;
pub mod automaton;
pub mod value;

pub mod diagnostic;

pub mod limits;

use std::path::Path;

pub use diagnostic::{Diagnostic, Errors, Findings};
pub use include::Files;
pub use plan::Plan;
pub use route_places::{RoutePlace, route_places};
pub use sources::{Source, Sources};

/// A configuration that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// What it means.
    pub plan: Plan,
    /// Warnings about what is valid but probably a mistake, such as a route that is never reached; in the order of the text.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the text of a configuration file that includes no other. `path` is where it came from: findings are prefixed with
/// its name, and relative paths in the text are taken from its directory. Nothing is read
/// from there.
///
/// Fails with everything found to be wrong, not only the first of it.
pub fn parse(text: &str, path: &Path) -> Result<Parsed, Errors> {
    parse_sources(&Sources::single(text, path))
}

/// Reads a configuration of one or several files. Findings are prefixed with the name of their file, and relative paths are
/// taken from the directory of the file that they are in.
///
/// Fails with everything found to be wrong, not only the first of it.
pub fn parse_sources(sources: &Sources) -> Result<Parsed, Errors> {
    let mut findings = Findings::new(sources);
    let plan = read::read(sources, &mut findings);
    let warnings = findings.finish()?;
    Ok(Parsed {
        plan: plan.expect("text without an error has a plan"),
        warnings,
    })
}
