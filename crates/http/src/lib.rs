//! Placeholder line replaced with the crate's first content.
