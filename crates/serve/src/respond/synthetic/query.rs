//! The query language of httpterm and haterm: `/?s=10k&t=50` requests 10 KiB after 50 ms.
//!
//! Arguments are single letters with a number, in any order, separated by any of `& ? , ; /`. Numbers are decimal, may
//! be negative, and may have any of the suffixes `k m g` (times 2^10, 2^20, 2^30) and `r` (a random number from 0 up to
//! the number, excluding it, drawn before it is multiplied). Other text is skipped. Where the two tools differ from
//! each other or from their own help:
//!
//! | | Onrush | as in |
//! |---|---|---|
//! | `k` | chunks of one byte | httpterm (haterm: one chunk) |
//! | `A` | respond before the request's body is read | haterm |
//! | `b=100k` | announces 102,400 | httpterm's help (its code: 100) |
//! | `b=0` | no length, so the connection closes, even with `K` | httpterm's help (its code: only without keep-alive) |
//! | `b` that is not the true length | closes after the body, unless `K` keeps the connection | httpterm keeps it |
//! | `c` | not cacheable below 1 | both helps (their code: only when 0) |
//! | `e` | a quoted ETag, as RFC 9110 requires | httpterm sends it unquoted |
//! | `p` | pieces of this size, one send each | httpterm sends random sizes up to it, with pauses |
//! | `v` | X-req and X-rsp are sent unless it is 0 | haterm (httpterm 1.7.10: only if it is not 0) |
//! | first `?` | starts the arguments, all of them count | httpterm (haterm: the last one does) |
//! | `s` with HEAD | the length is announced, no body is sent | RFC 9110 (both: length 0) |
//! | `r` below 200 | is refused: clients would not accept it as a final response | |
//! | `S` | is accepted and ignored: there is no splicing to disable | |

use std::time::Duration;

use crate::limits::{SYNTHETIC_BYTES_MAX, SYNTHETIC_TIME_MAX};

/// The requested response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Query {
    /// `s`: bytes of the body.
    pub(crate) size: u64,
    /// `r`: 200 to 999.
    pub(crate) status: u16,
    /// `t`: delay before the response.
    pub(crate) wait: Duration,
    /// `P`: delay after the response.
    pub(crate) pause: Duration,
    /// `w`: idle timeout of the connection after it.
    pub(crate) idle: Option<Duration>,
    /// `c`.
    pub(crate) cacheable: bool,
    /// `C` and `K`: whether the connection stays open, regardless of the client's choice.
    pub(crate) persists: Option<bool>,
    /// `b`.
    pub(crate) announced: Announced,
    /// `B`: bytes of the request body to read before the response.
    pub(crate) body_max: u64,
    /// `A`: respond before the request body is read.
    pub(crate) responds_first: bool,
    /// `e`: the seed of a hash.
    pub(crate) etag: Option<u64>,
    /// `k`.
    pub(crate) chunked: bool,
    /// `R`.
    pub(crate) random: bool,
    /// `p`: maximum bytes of the body per send.
    pub(crate) piece: Option<u64>,
    /// `v`.
    pub(crate) verbose: bool,
}

/// The announced length of the response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Announced {
    Truth,
    Nothing,
    Different(u64),
}

/// The result of parsing a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParsedQuery {
    Response(Query),
    /// `/?` and `/?h`.
    Help,
    /// No response can be made; the reason.
    Nonsense(&'static str),
}

impl Query {
    /// The response to `/`.
    pub(crate) const DEFAULT: Query = Query {
        size: 0,
        status: 200,
        wait: Duration::ZERO,
        pause: Duration::ZERO,
        idle: None,
        cacheable: true,
        persists: None,
        announced: Announced::Truth,
        body_max: u64::MAX,
        responds_first: false,
        etag: None,
        chunked: false,
        random: false,
        piece: None,
        verbose: true,
    };

    /// Parses the part of a target after its first `?`. `random` returns 64 random bits per call.
    pub(crate) fn parse(query: Option<&str>, mut random: impl FnMut() -> u64) -> ParsedQuery {
        let mut asked = Query::DEFAULT;
        let Some(query) = query else {
            return ParsedQuery::Response(asked);
        };
        if query.is_empty() || query.starts_with('h') {
            return ParsedQuery::Help;
        }
        for argument in query.as_bytes().split(|byte| b"&?,;/".contains(byte)) {
            let [letter, b'=', text @ ..] = argument else {
                continue;
            };
            let Some(number) = number(text, &mut random) else {
                continue;
            };
            if let Err(why) = asked.set(*letter, number) {
                return ParsedQuery::Nonsense(why);
            }
        }
        ParsedQuery::Response(asked)
    }

    fn set(&mut self, letter: u8, number: i64) -> Result<(), &'static str> {
        let size = u64::try_from(number).unwrap_or(0);
        match letter {
            b's' => self.size = size.min(SYNTHETIC_BYTES_MAX),
            b'r' => {
                let status = u16::try_from(number)
                    .ok()
                    .filter(|code| (200..1000).contains(code));
                self.status =
                    status.ok_or("r (the status) is out of range: expected 200 to 999")?;
            }
            b't' => self.wait = time(size),
            b'P' => self.pause = time(size),
            b'w' => self.idle = Some(time(size)),
            b'c' => self.cacheable = number >= 1,
            b'C' => self.persists = Some(number <= 0),
            b'K' => self.persists = Some(number > 0),
            b'b' => {
                self.announced = match number {
                    ..0 => Announced::Truth,
                    0 => Announced::Nothing,
                    1.. => Announced::Different(size),
                }
            }
            b'B' => self.body_max = if number < 0 { u64::MAX } else { size },
            b'A' => self.responds_first = number > 0,
            b'e' => self.etag = (number != 0).then_some(number as u64),
            b'k' => self.chunked = number > 0,
            b'R' => self.random = number > 0,
            b'p' => self.piece = (number > 0).then_some(size),
            b'v' => self.verbose = number != 0,
            // `S`, and letters of other versions.
            _ => {}
        }
        Ok(())
    }
}

/// Milliseconds, limited.
fn time(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(SYNTHETIC_TIME_MAX)
}

/// `[-]digits[kmgr]*`, saturating on overflow. The rest is skipped.
fn number(text: &[u8], random: &mut impl FnMut() -> u64) -> Option<i64> {
    let (sign, text) = match text {
        [b'-', text @ ..] => (-1, text),
        text => (1, text),
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let mut number = text[..digits].iter().fold(0i64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    let mut factor = 1i64;
    for suffix in &text[digits..] {
        match suffix.to_ascii_lowercase() {
            b'k' => factor = factor.saturating_mul(1 << 10),
            b'm' => factor = factor.saturating_mul(1 << 20),
            b'g' => factor = factor.saturating_mul(1 << 30),
            // The upper half of the 128-bit product scales the number by a fraction below one.
            b'r' => number = ((u128::from(random()) * number as u128) >> 64) as i64,
            _ => break,
        }
    }
    Some(sign * number.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Query {
        match Query::parse(Some(query), || 1 << 63) {
            ParsedQuery::Response(query) => query,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn arguments_are_parsed() {
        let d = Query::DEFAULT;
        let ms = Duration::from_millis;
        for (query, asked) in [
            ("s=0", d),
            ("s=1k", Query { size: 1024, ..d }),
            ("r=404", Query { status: 404, ..d }),
            ("r=999", Query { status: 999, ..d }),
            ("t=20", Query { wait: ms(20), ..d }),
            (
                "t=10k",
                Query {
                    wait: ms(10_240),
                    ..d
                },
            ),
            (
                "w=1000",
                Query {
                    idle: Some(ms(1000)),
                    ..d
                },
            ),
            ("P=5", Query { pause: ms(5), ..d }),
            (
                "c=0",
                Query {
                    cacheable: false,
                    ..d
                },
            ),
            ("c=1", d),
            (
                "C=1",
                Query {
                    persists: Some(false),
                    ..d
                },
            ),
            (
                "C=0",
                Query {
                    persists: Some(true),
                    ..d
                },
            ),
            (
                "K=1",
                Query {
                    persists: Some(true),
                    ..d
                },
            ),
            (
                "K=0",
                Query {
                    persists: Some(false),
                    ..d
                },
            ),
            ("b=-1", d),
            (
                "b=0",
                Query {
                    announced: Announced::Nothing,
                    ..d
                },
            ),
            (
                "b=100k",
                Query {
                    announced: Announced::Different(102_400),
                    ..d
                },
            ),
            (
                "B=10000",
                Query {
                    body_max: 10_000,
                    ..d
                },
            ),
            ("B=-1", d),
            (
                "A=1",
                Query {
                    responds_first: true,
                    ..d
                },
            ),
            ("e=7", Query { etag: Some(7), ..d }),
            ("e=0", d),
            ("k=1", Query { chunked: true, ..d }),
            ("k=0", d),
            ("R=1", Query { random: true, ..d }),
            (
                "p=100",
                Query {
                    piece: Some(100),
                    ..d
                },
            ),
            ("p=0", d),
            (
                "v=0",
                Query {
                    verbose: false,
                    ..d
                },
            ),
            ("S=0", d),
            ("z=1", d),
        ] {
            assert_eq!(parse(query), asked, "{query}");
        }
    }

    #[test]
    fn any_delimiter_separates_arguments() {
        let asked = Query {
            status: 500,
            size: 3,
            wait: Duration::from_millis(1000),
            cacheable: false,
            ..Query::DEFAULT
        };
        for query in [
            "r=500&s=3&c=0&t=1000",
            "r=500?s=3?c=0?t=1000",
            "r=500,s=3;c=0/t=1000",
            "s=1&r=500&s=3&c=0&t=1000",
            "&&r=500&&s=3&nonsense&c=0&t=1000&",
            "r=500&s=3x&c=0&t=1000&s=&s=k&s&=5&ss=9",
        ] {
            assert_eq!(parse(query), asked, "{query}");
        }
    }

    #[test]
    fn query_numbers_accept_suffixes_and_are_bounded() {
        for (text, value) in [
            ("10", Some(10)),
            ("10k", Some(10_240)),
            ("10K", Some(10_240)),
            ("1kk", Some(1 << 20)),
            ("2m", Some(2 << 20)),
            ("1g", Some(1 << 30)),
            ("-3k", Some(-3072)),
            // `random` returns one half here, applied before the factor.
            ("10r", Some(5)),
            ("10kr", Some(5120)),
            ("10rk", Some(5120)),
            ("5rk", Some(2048)),
            ("0r", Some(0)),
            ("010", Some(10)),
            ("7x9", Some(7)),
            ("99999999999999999999", Some(i64::MAX)),
            ("9g1", Some(9 << 30)),
            ("9gggggggg", Some(i64::MAX)),
            ("-99999999999999999999k", Some(-i64::MAX)),
            ("", None),
            ("k", None),
            ("-", None),
            ("+1", None),
        ] {
            assert_eq!(number(text.as_bytes(), &mut || 1 << 63), value, "{text}");
        }
        for bits in [0, 1, u64::MAX] {
            let drawn = number(b"1000r", &mut || bits).unwrap();
            assert!((0..1000).contains(&drawn), "{drawn}");
        }
        assert_eq!(parse("s=9gggg").size, SYNTHETIC_BYTES_MAX);
        assert_eq!(parse("s=-1").size, 0);
        assert_eq!(parse("t=9ggg").wait, SYNTHETIC_TIME_MAX);
    }

    #[test]
    fn empty_query_returns_help() {
        let parse = |query| Query::parse(query, || 0);
        assert_eq!(parse(None), ParsedQuery::Response(Query::DEFAULT));
        for query in ["", "h", "help"] {
            assert_eq!(parse(Some(query)), ParsedQuery::Help);
        }
        assert_eq!(parse(Some("x")), ParsedQuery::Response(Query::DEFAULT));
    }

    #[test]
    fn interim_status_is_invalid() {
        for query in [
            "r=0",
            "r=100",
            "r=101",
            "r=199",
            "r=1000",
            "r=-1",
            "r=1k",
            "s=1&r=99999999",
        ] {
            let parsed = Query::parse(Some(query), || 0);
            assert!(matches!(parsed, ParsedQuery::Nonsense(_)), "{query}");
        }
    }

    proptest::proptest! {
        #[test]
        fn parsed_queries_are_within_limits(
            query in "([srtwPcCKbBekSRpvAhx][=a]-?[0-9]{0,25}[kmgrKMGRx]{0,8}[&?,;/]?){0,6}",
            bits in proptest::prelude::any::<u64>(),
        ) {
            if let ParsedQuery::Response(asked) = Query::parse(Some(&query), || bits) {
                assert!(asked.size <= SYNTHETIC_BYTES_MAX);
                assert!((200..1000).contains(&asked.status));
                assert!(asked.wait.max(asked.pause) <= SYNTHETIC_TIME_MAX);
            }
        }
    }
}
