//! Limits of request heads: keys at the top of the file.

use std::ops::RangeInclusive;

use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::RequestLimits;
use crate::section::{Kind, Section};
use crate::value;

pub(super) fn read_request_limits(
    file: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> RequestLimits {
    let default = RequestLimits::default();
    let fields = 1..=limits::REQUEST_FIELDS_MAX as u32;
    let fields = file.count::<u32>("request_fields_max", fields, findings);
    let (least, head) = (limits::REQUEST_HEAD_MIN, limits::REQUEST_HEAD_MAX);
    let head = read_bytes(file, "request_head_max", least..=head, findings);
    let target = 1..=limits::REQUEST_TARGET_MAX;
    let target = read_bytes(file, "request_target_max", target, findings);
    RequestLimits {
        head_bytes_max: head.unwrap_or(default.head_bytes_max),
        fields_max: fields.map_or(default.fields_max, |fields| fields as usize),
        target_bytes_max: target.unwrap_or(default.target_bytes_max),
    }
}

fn read_bytes(
    file: &Section<'_, '_>,
    key: &str,
    range: RangeInclusive<usize>,
    findings: &mut Diagnostics<'_>,
) -> Option<usize> {
    const SIZE: Kind<u64> = Kind {
        expected: "a size such as \"4k\"",
        parse: value::parse_size,
    };
    let written = file.read_number(key, SIZE, findings)?;
    let bytes = usize::try_from(written).ok();
    let bytes = bytes.filter(|bytes| range.contains(bytes));
    if bytes.is_none() {
        let (least, most) = (range.start(), range.end());
        let message =
            format!("{key} of {written} bytes is out of range: expected {least} to {most}");
        findings.error(file.place(key), message);
    }
    bytes
}
