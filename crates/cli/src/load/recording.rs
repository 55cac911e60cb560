//! Requests of a recording of a browser, a HAR file.

use std::path::Path;

use onrush_load::limits::REQUESTS_BYTES_MAX;
use onrush_load::requests::{Request, har};
use onrush_load::target::Target;

use super::requests::{read, requests as counted, shown};

/// Requests of a HAR file to the server of `url`.
pub(super) fn requests(
    path: &Path,
    url: &Target,
    notes: &mut Vec<String>,
) -> Result<Vec<Request>, String> {
    let har = har::parse(&read(path, REQUESTS_BYTES_MAX)?, &shown(path), url)?;
    let skipped = [
        (har.other_servers, "to other servers"),
        (
            har.unsent,
            "that reached no server (served from the browser's cache, or aborted)",
        ),
    ];
    for (count, reason) in skipped.into_iter().filter(|(count, _)| *count > 0) {
        notes.push(format!(
            "skipped {} of the recording {reason}",
            counted(count as u64)
        ));
    }
    Ok(har.requests)
}
