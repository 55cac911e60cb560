//! Priority of a response (RFC 9218).

use crate::field::split_unquoted;

/// Priority in the field Priority or in PRIORITY_UPDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least (RFC 9218 4.1).
    pub urgency: u8,
    /// How the response shares the connection with others of its urgency (RFC 9218 4.2).
    pub delivery: Delivery,
}

/// Order of responses of the same urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Useful only when complete: sent one after the other.
    Whole,
    /// Useful in parts: interleaved with others.
    Incremental,
}

pub(crate) const URGENCIES: usize = 8;

impl Priority {
    /// Default without a priority of the client.
    pub const DEFAULT: Priority = Priority {
        urgency: 3,
        delivery: Delivery::Whole,
    };

    /// Parses a value, a dictionary of structured fields (RFC 9651). Unknown members and invalid values are ignored
    /// (RFC 9218 4); of repeated members the last counts.
    pub fn parse(value: &[u8]) -> Priority {
        let mut priority = Priority::DEFAULT;
        for member in split_unquoted(value, b',') {
            let item = member.split(|&byte| byte == b';').next().unwrap_or(b"");
            match item.trim_ascii() {
                [b'u', b'=', urgency @ b'0'..=b'7'] => priority.urgency = urgency - b'0',
                b"i" | b"i=?1" => priority.delivery = Delivery::Incremental,
                b"i=?0" => priority.delivery = Delivery::Whole,
                _ => {}
            }
        }
        priority
    }
}

impl Default for Priority {
    fn default() -> Self {
        Priority::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_priority_parameters_are_ignored() {
        let whole = Delivery::Whole;
        let parts = Delivery::Incremental;
        for (value, urgency, delivery) in [
            ("", 3, whole),
            ("u=5, i", 5, parts),
            ("i,u=0", 0, parts),
            ("u=8", 3, whole),
            ("u=-1", 3, whole),
            ("u=1.5, i=1", 3, whole),
            ("i=?0", 3, whole),
            ("i=?1;x=2, u=7;y", 7, parts),
            ("u=1, u=2", 2, whole),
            ("a=\"u=6, i\", u=4", 4, whole),
            ("\"", 3, whole),
        ] {
            let wanted = Priority { urgency, delivery };
            assert_eq!(Priority::parse(value.as_bytes()), wanted, "{value}");
        }
    }
}
