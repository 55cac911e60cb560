//! Settings at the top of the file for routes without their own.

use super::error_pages::read_error_pages;
use super::kinds::REQUEST_BODY_MAX;
use super::timeouts::read_timeouts;
use super::{cache_control, compress, upstream_headers};
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{CacheRule, Compress, ErrorPages, Timeouts, UpstreamHeaders};
use crate::section::Section;

/// Settings for routes without their own.
pub(super) struct Defaults {
    pub(super) compress: Option<Compress>,
    pub(super) cache_control: Vec<CacheRule>,
    pub(super) request_body_max: Option<u64>,
    pub(super) error_pages: ErrorPages,
    pub(super) timeouts: Timeouts,
    pub(super) upstream_headers: UpstreamHeaders,
}

impl Defaults {
    pub(super) fn read(file: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Defaults {
        let request_body_max = file.read_number("request_body_max", REQUEST_BODY_MAX, findings);
        let error_pages = read_error_pages(file, None, findings);
        Defaults {
            timeouts: read_timeouts(file, findings),
            error_pages: error_pages.unwrap_or_default(),
            upstream_headers: upstream_headers::read(file, findings).unwrap_or_default(),
            compress: compress::read_default(file, findings),
            cache_control: cache_control::read_default(file, findings),
            request_body_max: request_body_max.unwrap_or(Some(limits::REQUEST_BODY_MAX_DEFAULT)),
        }
    }
}
