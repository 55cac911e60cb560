//! How large the heads of requests may be.

use crate::limits;

/// Bounds on the heads of requests, at most those that nothing is said about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of a head.
    pub head_bytes_max: usize,
    /// Fields of a head.
    pub fields_max: usize,
    /// Bytes of a target.
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
