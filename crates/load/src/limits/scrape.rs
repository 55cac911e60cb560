//! Bounds of serving metrics of a run to scrapers.

use std::time::Duration;

/// How long a scraper may take to ask and to take its metrics: it has one packet to send, and others wait behind it.
pub(crate) const SCRAPE_PATIENCE: Duration = Duration::from_secs(2);

/// Pieces in which a scraper's request may arrive: it has a few hundred bytes.
pub(crate) const SCRAPE_PIECES_MAX: usize = 16;
