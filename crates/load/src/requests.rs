//! Requests, as users write them in flags and files, and as they are sent.
//!
//! ```text
//!  flags, JSON lines, a HAR, an access log ──> Request ──> mix::Mix ── request number ──> its bytes
//! ```
//!
//! A request depends only on its number in the run: its kind, its counter, its row of data and its random numbers. So
//! threads and generators that share a run need no communication, and a request that is sent again is the same.

pub mod grpc;
pub mod header;
pub mod memcached;
pub(crate) mod request;
pub(crate) mod response;

pub mod access_log;
pub mod data;
pub mod har;
pub mod lines;

pub(crate) mod cookies;
pub(crate) mod expect;
pub(crate) mod grpc_calls;
pub(crate) mod mix;
pub(crate) mod template;

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::pace::target::{Scheme, Target};
use crate::requests::grpc::code;
use data::Data;
use template::Names;

/// Requests of a run.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    /// Kinds of requests. If empty, the target's URL is requested with the method and the fields of the options.
    pub requests: Vec<Request>,
    /// Order of the requests.
    pub order: Order,
    /// Data of `{{data:COLUMN}}` variables.
    pub data: Option<Data>,
    /// Whether each connection stores and returns cookies.
    pub cookies: bool,
    /// Names of the values that journeys extract from responses; templates may use them. See
    /// [`Journeys`](crate::journey::Journeys).
    pub taken: Vec<String>,
}

impl RequestOptions {
    pub(crate) fn names(&self) -> Names<'_> {
        Names {
            data: self.data.as_ref(),
            taken: &self.taken,
        }
    }
}

/// Order of the requests of a mix.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Random, in proportion to the weights.
    #[default]
    ByWeight,
    /// Round robin over the whole run.
    RoundRobin,
    /// Request `n` of the run has the kind listed at index `n`; the list is repeated.
    Listed(Arc<[u32]>),
}

/// One kind of request. Its path, the values of its fields and a text body may contain the variables `{{counter}}`,
/// `{{random:LOW-HIGH}}` and `{{data:COLUMN}}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Name of the method.
    pub method: String,
    /// Value of `Host`, unless it is among the fields.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Further fields, in this order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Body,
    /// Weight among all kinds.
    pub weight: NonZeroU32,
    /// Expectation of its response.
    pub expect: Expect,
}

/// The body of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Body {
    /// No body.
    #[default]
    None,
    /// Text with variables.
    Text(String),
    /// Bytes without variables.
    Bytes(Arc<[u8]>),
}

/// Expectation of a response; a mismatch is an error.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expect {
    /// Permitted statuses; empty permits all.
    pub statuses: Vec<Statuses>,
    /// Bytes that the body must contain, after transfer coding and before content coding.
    pub body: Option<String>,
}

/// Inclusive range of HTTP statuses, or a gRPC code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statuses {
    /// First status.
    pub from: u16,
    /// Last status.
    pub to: u16,
}

impl Request {
    /// A GET of `target`.
    pub fn of(target: &Target) -> Request {
        Request {
            method: "GET".to_owned(),
            host: target.host.clone(),
            path: target.path.clone(),
            headers: Vec::new(),
            body: Body::None,
            weight: NonZeroU32::MIN,
            expect: Expect::default(),
        }
    }
}

impl Statuses {
    /// Parses a status such as `404`, a class such as `2xx`, or the name of a gRPC code such as `NOT_FOUND`.
    ///
    /// # Errors
    /// A sentence with the expected form.
    pub fn parse(text: &str) -> Result<Statuses, String> {
        match code::of_name(text) {
            Some(code) => Ok(Statuses {
                from: code,
                to: code,
            }),
            None => Statuses::parse_http(text),
        }
    }

    /// Parses a status such as `404` or a class such as `2xx`.
    ///
    /// # Errors
    /// A sentence with the expected form.
    pub(crate) fn parse_http(text: &str) -> Result<Statuses, String> {
        let expected = || {
            format!(
                "{text:?} is not a response status: expected one such as 204, or a class such as 2xx, from 200 to 999"
            )
        };
        let class = text.strip_suffix("xx").or(text.strip_suffix("XX"));
        let (from, to) = match class {
            Some(digit) => {
                let digit: u16 = digit.parse().map_err(|_| expected())?;
                (digit * 100, digit * 100 + 99)
            }
            None => {
                let status: u16 = text.parse().map_err(|_| expected())?;
                (status, status)
            }
        };
        if !(200..1000).contains(&from) {
            return Err(expected());
        }
        Ok(Statuses { from, to })
    }
}

impl Expect {
    /// Checks that responses over `scheme` can match the expectation.
    ///
    /// # Errors
    /// A sentence with the kind of outcome they have.
    pub(crate) fn check(&self, scheme: Scheme) -> Result<(), String> {
        let is_code = |of: &Statuses| of.to <= code::CODE_MAX;
        let is_fit = |of: &Statuses| is_code(of) == scheme.is_grpc();
        match (self.statuses.iter().all(is_fit), scheme.is_grpc()) {
            (true, _) => Ok(()),
            (false, true) => Err("responses of gRPC have codes, not HTTP statuses: expect a code such as OK or \
                NOT_FOUND".to_owned()),
            (false, false) => Err("HTTP responses have statuses, not gRPC codes: expect a status such as 200, or use \
                grpc://".to_owned()),
        }
    }
}

/// Returns the request target and the host for `url`, a path or a complete URL in a file. `target` is the server that
/// connections go to.
///
/// # Errors
/// A sentence with the reason why this server cannot be asked for it.
pub(crate) fn resolve_url(target: &Target, url: &str) -> Result<(String, String), String> {
    if url.starts_with('/') {
        if let Some(bad) = url.chars().find(|letter| !letter.is_ascii_graphic()) {
            return Err(format!("{bad:?} in {url:?} must be percent-encoded"));
        }
        return Ok((target.host.clone(), url.to_owned()));
    }
    let other = Target::of_url(url)?;
    if (other.scheme, &other.place) != (target.scheme, &target.place) {
        return Err(format!(
            "{url} is on another server than {}: a run connects to one server; start a run for each at the same time, \
             and combine them with onrush load merge",
            target.url
        ));
    }
    Ok((other.host, other.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_parsed_as_code_or_class() {
        let of = |text| Statuses::parse(text).map(|statuses| (statuses.from, statuses.to));
        assert_eq!(of("204"), Ok((204, 204)));
        assert_eq!(of("3xx"), Ok((300, 399)));
        assert_eq!(of("NOT_FOUND"), Ok((5, 5)));
        for bad in ["", "x", "1xx", "99", "100", "1000", "12xx", "-1", "2x"] {
            assert!(of(bad).unwrap_err().contains("expected one such"), "{bad}");
        }
    }

    #[test]
    fn request_urls_must_match_target() {
        let target = Target::parse("http://a:81/x").unwrap();
        let of = |url| resolve_url(&target, url);
        assert_eq!(of("/y?z"), Ok(("a:81".to_owned(), "/y?z".to_owned())));
        assert_eq!(
            of("http://a:81/w"),
            Ok(("a:81".to_owned(), "/w".to_owned()))
        );
        assert!(of("http://b/").unwrap_err().contains("another server"));
        assert!(of("https://a:81/").unwrap_err().contains("another server"));
        assert!(of("/a b").unwrap_err().contains("percent-encoded"));
    }
}
