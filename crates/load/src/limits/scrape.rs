//! Limits of the metrics endpoint of a run.

use std::time::Duration;

/// Time in which a scraper must send its request and read the response: the request is one packet, and other scrapers
/// wait.
pub(crate) const SCRAPE_TIMEOUT: Duration = Duration::from_secs(2);

/// Pieces in which a scraper's request may arrive; it has a few hundred bytes.
pub(crate) const SCRAPE_PIECES_MAX: usize = 16;
