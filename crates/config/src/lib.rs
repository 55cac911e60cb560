//! Configuration: text -> sections -> a validated [`Plan`]. This crate does no I/O: it gets texts ([`Sources`]) and
//! returns a plan or all errors.
//!
//! `Section` holds the written values with their places, [`Plan`] their meaning. Command lines without a file use the
//! same parse functions ([`Plan::one_liner`], [`address`], [`value`]), so that a flag and a key report the same mistake
//! in the same words.
//!
//! `sources.rs` holds the texts of several files, with positions that count through all of them. `include.rs` finds the
//! files, through a reader that the caller passes; `merge.rs` merges them into one table. `read/` has one file for
//! each section.
//!
//! # Invariants
//!
//! - A plan is valid: every value is in range and every reference resolves. Whether its files exist is checked
//!   elsewhere.
//! - All mistakes are reported at once, in the order of the text, each with line, column and the nearest valid
//!   spelling. That is why the spanned TOML is read by hand: derived code stops at the first error.
#![forbid(unsafe_code)]

pub mod plan;

pub mod changes;
pub mod mask;

mod read;
mod section;

mod merge;
mod route_places;

mod include;
mod size_counter;
mod sources;
mod toml_values;

pub mod address;
pub mod automaton;
pub mod value;

pub mod diagnostic;

pub mod limits;

use std::path::Path;

pub use diagnostic::{Diagnostic, Diagnostics, Errors};
pub use include::IncludeReader;
pub use plan::Plan;
pub use route_places::{RoutePlace, route_places};
pub use sources::{Source, Sources};

/// A valid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The plan.
    pub plan: Plan,
    /// Warnings about valid but probably mistaken settings, such as an unreachable route, in the order of the text.
    pub warnings: Vec<Diagnostic>,
}

/// Parses the text of a configuration file that includes no other. `path` is its origin: diagnostics start with it, and
/// relative paths are resolved against its directory. The file is not read.
///
/// Fails with all errors.
pub fn parse(text: &str, path: &Path) -> Result<Parsed, Errors> {
    parse_sources(&Sources::single(text, path))
}

/// Parses a configuration of one or several files. Relative paths are resolved against the directory of the file that
/// contains them.
///
/// Fails with all errors.
pub fn parse_sources(sources: &Sources) -> Result<Parsed, Errors> {
    let mut findings = Diagnostics::new(sources);
    let plan = read::read(sources, &mut findings);
    let warnings = findings.finish()?;
    Ok(Parsed {
        plan: plan.expect("text without an error has a plan"),
        warnings,
    })
}
