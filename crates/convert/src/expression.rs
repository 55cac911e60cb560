//! Conditions on requests: paths, fields and regular expressions, and the decision lists made of them.

pub(crate) mod automaton;
pub(crate) mod condition;
pub(crate) mod decide;
pub(crate) mod dialect;
pub(crate) mod parts;
pub(crate) mod path;
pub(crate) mod pattern;
pub(crate) mod pcre;
