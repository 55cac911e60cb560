//! Requests of a recording of a browser, a HAR file.

use onrush_load::requests::{Request, har};
use onrush_load::target::Target;

/// Requests to the server of `url` in `text`, the contents of `file`.
pub(super) fn requests(
    text: &str,
    file: &str,
    url: &Target,
    notes: &mut Vec<String>,
) -> Result<Vec<Request>, String> {
    let har = har::parse(text, file, url)?;
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

pub(super) fn counted(count: u64) -> String {
    match count {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    }
}
