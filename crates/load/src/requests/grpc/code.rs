//! Status codes of gRPC, by number and by name (google/rpc/code.proto).

const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

pub(crate) const CODE_MAX: u16 = NAMES.len() as u16 - 1;

pub(crate) fn name(number: u16) -> Option<&'static str> {
    NAMES.get(usize::from(number)).copied()
}

/// Returns the number of the code with this name, ignoring case.
pub(crate) fn of_name(name: &str) -> Option<u16> {
    let mut numbers = 0..;
    let mut names = NAMES.iter();
    let number = names.position(|known| known.eq_ignore_ascii_case(name));
    number.and_then(|place| numbers.nth(place))
}

/// Parses the value of `grpc-status`, a decimal number.
pub(crate) fn parse(value: &[u8]) -> Option<u16> {
    let number: u16 = std::str::from_utf8(value).ok()?.parse().ok()?;
    let is_digits = value.iter().all(u8::is_ascii_digit);
    (is_digits && number <= CODE_MAX).then_some(number)
}

/// Returns the class of the HTTP status to which a code is mapped (google/rpc/code.proto): 2, 4 or 5.
pub(crate) fn class(number: u16) -> u8 {
    match number {
        0 => 2,
        // CANCELLED (499) to RESOURCE_EXHAUSTED (429) except UNKNOWN and DEADLINE_EXCEEDED (504); FAILED_PRECONDITION,
        // ABORTED, OUT_OF_RANGE and UNAUTHENTICATED.
        1 | 3 | 5..=11 | 16 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_codes_map_to_unique_names() {
        for number in 0..=CODE_MAX {
            let name = name(number).expect("it is a code");
            assert_eq!(of_name(name), Some(number));
            assert_eq!(of_name(&name.to_ascii_lowercase()), Some(number));
            assert_eq!(parse(number.to_string().as_bytes()), Some(number));
        }
        assert_eq!(name(17), None);
        assert_eq!(of_name("FINE"), None);
    }

    #[test]
    fn invalid_grpc_codes_are_refused() {
        for value in ["", "17", "-1", "+0", " 0", "0 ", "OK", "0.0", "99999999999"] {
            assert_eq!(parse(value.as_bytes()), None, "{value:?}");
        }
    }

    #[test]
    fn grpc_codes_have_class_of_http_status() {
        let of = |name| class(of_name(name).unwrap());
        assert_eq!([of("OK"), of("UNKNOWN"), of("CANCELLED")], [2, 5, 4]);
        assert_eq!([of("DEADLINE_EXCEEDED"), of("RESOURCE_EXHAUSTED")], [5, 4]);
        assert_eq!(
            [
                of("UNAVAILABLE"),
                of("UNAUTHENTICATED"),
                of("UNIMPLEMENTED")
            ],
            [5, 4, 5]
        );
    }
}
