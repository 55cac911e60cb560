//! What is sent: requests as users write them, from flags and files, and as they go out.
//!
//! ```text
//!  flags, JSON lines, a HAR, an access log ──> Request ──> mix::Mix ── number of a request ──> its bytes
//! ```
//!
//! Everything about a request follows from its number in the run: which of the mix it is, its counter, its row of data
//! and its random numbers. So threads and generators that share a run need not talk to each other, and a request that
//! must be sent again is the same.

pub mod grpc;
pub mod header;
pub mod memcached;
pub(crate) mod request;
pub(crate) mod response;

pub mod access_log;
pub mod data;
pub mod har;
pub mod lines;

pub(crate) mod calls;
pub(crate) mod cookies;
pub(crate) mod expect;
pub(crate) mod mix;
pub(crate) mod template;

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::pace::target::{Scheme, Target};
use crate::requests::grpc::code;
use data::Data;
use template::Names;

/// What a run sends.
#[derive(Clone, Debug, Default)]
pub struct Asks {
    /// Without any, the target is asked for with the method and the fields of the options.
    pub requests: Vec<Request>,
    /// Which of them comes when.
    pub order: Order,
    /// What `{{data:COLUMN}}` stands for.
    pub data: Option<Data>,
    /// Whether each connection keeps the cookies it is given, and sends them back.
    pub cookies: bool,
    /// The values that journeys take from responses, which texts may name; see [`Journeys`](crate::journey::Journeys).
    pub taken: Vec<String>,
}

impl Asks {
    /// What may be named in texts.
    pub(crate) fn names(&self) -> Names<'_> {
        Names {
            data: self.data.as_ref(),
            taken: &self.taken,
        }
    }
}

/// Which request of a mix comes when.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// By chance, as often as its weight says.
    #[default]
    ByWeight,
    /// One after the other over the whole run, and from the start again.
    InTurn,
    /// Request `n` of the run is the one with the number that stands at `n`; behind the last it begins anew.
    Listed(Arc<[u32]>),
}

/// One kind of request. In its path, in the values of its fields and in a body of text stand variables:
/// `{{counter}}`, `{{random:LOW-HIGH}}` and `{{data:COLUMN}}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The method's name.
    pub method: String,
    /// The value of `Host`, unless a field says another.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Further fields, in this order.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Body,
    /// How often it comes, beside the others.
    pub weight: NonZeroU32,
    /// What its response must be like.
    pub expect: Expect,
}

/// The body of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Body {
    /// There is none.
    #[default]
    None,
    /// Text, in which variables may stand.
    Text(String),
    /// Bytes that are sent as they are.
    Bytes(Arc<[u8]>),
}

/// What a response must be like; another one is an error.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expect {
    /// One of these statuses; any when there are none.
    pub statuses: Vec<Statuses>,
    /// Bytes that its body has, after transfer coding and before content coding.
    pub body: Option<String>,
}

/// Statuses of HTTP from the first to the last, or a code of gRPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statuses {
    /// The first.
    pub from: u16,
    /// The last.
    pub to: u16,
}

impl Request {
    /// A GET of what `target` names.
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
    /// Reads `404` or a class such as `2xx`; or the name of a code of gRPC, such as `NOT_FOUND`.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub fn parse(text: &str) -> Result<Statuses, String> {
        match code::of_name(text) {
            Some(code) => Ok(Statuses {
                from: code,
                to: code,
            }),
            None => Statuses::parse_http(text),
        }
    }

    /// Reads `404` or a class such as `2xx`.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub(crate) fn parse_http(text: &str) -> Result<Statuses, String> {
        let expected = || {
            format!(
                "{text:?} is no status of a response: expected one such as 204, or a class such as 2xx, from 200 to 999"
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
    /// Checks that what is expected is what responses from `scheme` can have.
    ///
    /// # Errors
    /// A sentence with what they have.
    pub(crate) fn check(&self, scheme: Scheme) -> Result<(), String> {
        let is_code = |of: &Statuses| of.to <= code::CODE_MAX;
        let is_fit = |of: &Statuses| is_code(of) == scheme.is_grpc();
        match (self.statuses.iter().all(is_fit), scheme.is_grpc()) {
            (true, _) => Ok(()),
            (false, true) => Err("responses to calls have codes, and a status of HTTP is expected: expect one such as OK or NOT_FOUND".to_owned()),
            (false, false) => Err("responses over HTTP have statuses, and a code of gRPC is expected: expect one such as 200, or use grpc://".to_owned()),
        }
    }
}

/// The request target and the host of what a file asks for, by a path or a whole URL, as seen from `target`, which
/// says where connections go.
///
/// # Errors
/// A sentence that says why it cannot be asked there.
pub(crate) fn place(target: &Target, url: &str) -> Result<(String, String), String> {
    if url.starts_with('/') {
        if let Some(bad) = url.chars().find(|letter| !letter.is_ascii_graphic()) {
            return Err(format!("{bad:?} in {url:?} must be percent-encoded"));
        }
        return Ok((target.host.clone(), url.to_owned()));
    }
    let other = Target::of_url(url)?;
    if (other.scheme, &other.place) != (target.scheme, &target.place) {
        return Err(format!(
            "{url} is at another server than {}: connections go to one; make a run for each, at the same time, and add them up with onrush load merge",
            target.url
        ));
    }
    Ok((other.host, other.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_numbers_or_classes() {
        let of = |text| Statuses::parse(text).map(|statuses| (statuses.from, statuses.to));
        assert_eq!(of("204"), Ok((204, 204)));
        assert_eq!(of("3xx"), Ok((300, 399)));
        assert_eq!(of("NOT_FOUND"), Ok((5, 5)));
        for bad in ["", "x", "1xx", "99", "100", "1000", "12xx", "-1", "2x"] {
            assert!(of(bad).unwrap_err().contains("expected one such"), "{bad}");
        }
    }

    #[test]
    fn a_path_is_asked_where_connections_go_and_a_url_must_be_there() {
        let target = Target::parse("http://a:81/x").unwrap();
        let of = |url| place(&target, url);
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
