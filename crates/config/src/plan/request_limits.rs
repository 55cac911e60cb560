//! Limits of request heads.

use crate::limits;

/// Limits of request heads, at most the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Size of a head in bytes.
    pub head_bytes_max: usize,
    /// Number of header fields.
    pub fields_max: usize,
    /// Size of the request target in bytes.
    pub target_bytes_max: usize,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            head_bytes_max: limits::REQUEST_HEAD_MAX,
            fields_max: limits::REQUEST_FIELDS_MAX,
            target_bytes_max: limits::REQUEST_TARGET_MAX,
        }
    }
}
