//! Validated requests of a run: maps a request number to its bytes. Pure.

use std::sync::Arc;

use onrush_engine::random::{self, Random};
use onrush_http::Method;

use super::cookies::CookieJar;
use super::data::Data;
use super::expect::Expected;
use super::template::{Names, Place, Template, Values};
use super::{Body, Order, Request, RequestOptions};
use crate::limits::{BODY_BYTES_MAX, BODY_COPIED_MAX, REQUEST_BYTES_MAX};
use crate::requests::request::{LastRequest, RequestKind};

#[derive(Debug)]
pub(crate) struct Mix {
    recipes: Box<[Recipe]>,
    /// Cumulative weights of the recipes.
    weights: Box<[u64]>,
    order: Order,
    data: Option<Data>,
    cookies: bool,
    seed: u64,
    /// Upper bound of a request's bytes.
    bytes_max: usize,
}

/// Compiled kind of request.
#[derive(Debug)]
pub(crate) struct Recipe {
    /// Method and path as written by the user.
    pub(crate) kind: RequestKind,
    pub(crate) method: Method,
    /// Request line and fields, without the empty line.
    head: Template,
    content: Content,
    pub(crate) expected: Option<Expected>,
    /// Whether the request has `Connection: close` (RFC 9112 section 9.6).
    pub(crate) closes: bool,
}

#[derive(Debug)]
enum Content {
    Nothing,
    /// No content, with `Content-Length: 0`.
    Empty,
    Written(Template),
    /// A body that is too long to be copied into each request.
    Large(Arc<[u8]>),
}

impl Mix {
    /// Checks `asks`. `common` has the fields of all requests without a field of that name.
    ///
    /// # Errors
    /// A sentence with the request and the mistake.
    pub(crate) fn new(
        asks: &RequestOptions,
        common: &[(String, String)],
        seed: u64,
    ) -> Result<Mix, String> {
        let mut sum = 0;
        let mut recipes = Vec::with_capacity(asks.requests.len());
        let mut weights = Vec::with_capacity(asks.requests.len());
        for request in &asks.requests {
            let recipe = Recipe::new(request, common, asks);
            recipes.push(recipe.map_err(|why| match asks.requests.len() {
                1 => why,
                _ => format!("{} {}: {why}", request.method, request.path),
            })?);
            sum += u64::from(request.weight.get());
            weights.push(sum);
        }
        let data = asks.data.as_ref();
        let bytes = recipes.iter().map(|recipe| recipe.bytes_max(data));
        Ok(Mix {
            bytes_max: bytes.max().unwrap_or(0),
            recipes: recipes.into(),
            weights: weights.into(),
            order: asks.order.clone(),
            data: asks.data.clone(),
            cookies: asks.cookies,
            seed,
        })
    }

    pub(crate) fn recipes(&self) -> &[Recipe] {
        &self.recipes
    }

    pub(crate) fn keeps_cookies(&self) -> bool {
        self.cookies
    }

    /// Whether all requests are identical and short.
    pub(crate) fn is_constant(&self) -> bool {
        let [recipe] = &*self.recipes else {
            return false;
        };
        recipe.is_fixed() && !self.cookies
    }

    /// Returns the index of the recipe of request `number` of the run.
    #[inline]
    pub(crate) fn choose(&self, number: u64) -> usize {
        let kinds = self.recipes.len();
        if kinds == 1 {
            return 0;
        }
        match &self.order {
            Order::RoundRobin => (number % kinds as u64) as usize,
            Order::Listed(list) => list[(number % list.len() as u64) as usize] as usize,
            Order::ByWeight => choose(&self.weights, self.seed, number),
        }
    }

    /// Appends request `number` to `out`. Returns its body if that is too long to be copied; the caller sends it after
    /// `out`.
    pub(crate) fn write(
        &self,
        number: u64,
        last: LastRequest,
        jar: Option<&CookieJar>,
        out: &mut Vec<u8>,
    ) -> Option<&Arc<[u8]>> {
        let values = self.values(number);
        self.write_recipe(self.choose(number), &values, &[], (last, jar), out)
    }

    /// Returns the values of variables in request `number`, or in the requests of journey `number`.
    pub(crate) fn values(&self, number: u64) -> Values<'_> {
        Values {
            number,
            random: Random::stream(self.seed, number),
            data: self.data.as_ref(),
        }
    }

    /// Appends a request made from the recipe at `place` to `out`, with the values `taken` from earlier responses.
    /// Returns the same as [`write`](Self::write).
    pub(crate) fn write_recipe(
        &self,
        place: usize,
        values: &Values<'_>,
        taken: &[Vec<u8>],
        (last, jar): (LastRequest, Option<&CookieJar>),
        out: &mut Vec<u8>,
    ) -> Option<&Arc<[u8]>> {
        let recipe = &self.recipes[place];
        recipe.head.write(values, taken, out);
        if let Some(jar) = jar {
            jar.write(out);
        }
        if last == LastRequest::Yes && !recipe.closes {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        match &recipe.content {
            Content::Nothing => out.extend_from_slice(b"\r\n"),
            Content::Empty => out.extend_from_slice(b"Content-Length: 0\r\n\r\n"),
            Content::Large(bytes) => {
                out.extend_from_slice(LENGTH);
                out.extend_from_slice(itoa::Buffer::new().format(bytes.len()).as_bytes());
                out.extend_from_slice(HEAD_END);
                return Some(bytes);
            }
            Content::Written(body) => {
                // The length precedes the body, but is known only after rendering it.
                let at = out.len();
                body.write(values, taken, out);
                let mut digits = itoa::Buffer::new();
                let length = digits.format(out.len() - at).as_bytes();
                let line = LENGTH.iter().chain(length).chain(HEAD_END);
                out.splice(at..at, line.copied());
            }
        }
        None
    }

    pub(crate) fn request(&self, last: LastRequest) -> Vec<u8> {
        let mut bytes = Vec::new();
        let body = self.write(0, last, None, &mut bytes);
        bytes.extend_from_slice(body.map_or(&[][..], |body| body));
        bytes
    }

    /// Returns the length of the requests if they are identical, otherwise an upper bound.
    pub(crate) fn request_bytes(&self) -> usize {
        match self.is_constant() {
            true => self.request(LastRequest::No).len(),
            false => self.bytes_max,
        }
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}

/// Returns the index of the choice for `number`, in proportion to weights whose cumulative sums are `ends`.
pub(crate) fn choose(ends: &[u64], seed: u64, number: u64) -> usize {
    let sum = ends[ends.len() - 1];
    let point = random::scaled(Random::stream(!seed, number).bits(), sum);
    ends.partition_point(|&end| end <= point)
}

const LENGTH: &[u8] = b"Content-Length: ";

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Longest end of a head: `Connection: close`, `Content-Length` and the empty line.
const END_BYTES_MAX: usize = 64;

impl Recipe {
    fn new(
        request: &Request,
        common: &[(String, String)],
        asks: &RequestOptions,
    ) -> Result<Recipe, String> {
        let data = asks.data.as_ref();
        if !onrush_http::is_token(request.method.as_bytes()) {
            return Err(format!(
                "{:?} is not a method: expected letters, digits and any of !#$%&'*+-.^_`|~, such as GET (RFC 9110 5.6.2)",
                request.method
            ));
        }
        if request.method == "CONNECT" {
            return Err("CONNECT opens a tunnel through a proxy, and has neither a path nor a response that ends (RFC \
                9110 9.3.6): use another method; to load a proxy, give the target as URL and the \
                proxy as --connect-to".to_owned());
        }
        let has = |fields: &[(String, String)], wanted: &str| {
            let mut names = fields.iter().map(|(name, _)| name);
            names.any(|name| name.eq_ignore_ascii_case(wanted))
        };
        let headers = &request.headers;
        let common = common.iter().filter(|(name, _)| !has(headers, name));
        let fields: Vec<(String, String)> = headers.iter().chain(common).cloned().collect();
        check_fields(&fields, asks.cookies)?;
        let names = asks.names();
        let line = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
        let line = Template::parse(&line, names, Place::Target)?;
        let mut text = String::new();
        if !has(&fields, "host") {
            text += &format!("Host: {}\r\n", request.host);
        }
        let is_target = |value: &[u8]| value.iter().all(u8::is_ascii_graphic);
        check_values(&request.path, names, "a path: percent-encode it", is_target)?;
        for (name, value) in &fields {
            check_values(
                value,
                names,
                "the value of a field",
                onrush_http::is_field_value,
            )?;
            text += &format!("{name}: {value}\r\n");
        }
        let head = line.and(Template::parse(&text, names, Place::Other)?);
        if head.bytes_max(data) + END_BYTES_MAX > REQUEST_BYTES_MAX {
            return Err(format!(
                "the request is too long: expected {REQUEST_BYTES_MAX} bytes at most before its body"
            ));
        }
        let method = Method::of(&request.method);
        Ok(Recipe {
            kind: RequestKind {
                name: format!("{} {}", request.method, request.path),
                is_repeatable: is_idempotent(method),
                lists_outcomes: !request.expect.statuses.is_empty(),
            },
            method,
            head,
            content: content(request, has(&fields, "content-length"), names)?,
            expected: Expected::new(&request.expect),
            closes: has_connection_close(&fields),
        })
    }

    pub(crate) fn is_fixed(&self) -> bool {
        let is_fixed = match &self.content {
            Content::Nothing | Content::Empty => true,
            Content::Written(body) => body.is_fixed(),
            Content::Large(_) => false,
        };
        is_fixed && self.head.is_fixed()
    }

    fn bytes_max(&self, data: Option<&Data>) -> usize {
        let content = match &self.content {
            Content::Nothing | Content::Empty => 0,
            Content::Written(body) => body.bytes_max(data),
            Content::Large(bytes) => bytes.len(),
        };
        self.head.bytes_max(data) + END_BYTES_MAX + content
    }
}

pub(crate) fn has_connection_close(fields: &[(String, String)]) -> bool {
    let mut connection = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    connection.any(|(_, value)| {
        let mut options = value.split(',').map(str::trim);
        options.any(|option| option.eq_ignore_ascii_case("close"))
    })
}

/// Whether a method is idempotent (RFC 9110 section 9.2.2).
fn is_idempotent(method: Method) -> bool {
    match method {
        Method::Get
        | Method::Head
        | Method::Put
        | Method::Delete
        | Method::Options
        | Method::Trace => true,
        Method::Post | Method::Connect | Method::Patch | Method::Other => false,
    }
}

/// Returns the content of a request. `is_announced` is whether it has a Content-Length field.
fn content(request: &Request, is_announced: bool, names: Names<'_>) -> Result<Content, String> {
    let too_large = |bytes: usize| {
        format!("a body of {bytes} bytes is too large: expected {BODY_BYTES_MAX} at most")
    };
    match &request.body {
        // RFC 9110 section 8.6: methods that define content send `Content-Length: 0`.
        Body::None if !is_announced && matches!(&*request.method, "POST" | "PUT" | "PATCH") => {
            Ok(Content::Empty)
        }
        Body::None => Ok(Content::Nothing),
        _ if is_announced => {
            Err("the length of a body is computed: leave the header Content-Length out".to_owned())
        }
        Body::Text(text) => {
            let body = Template::parse(text, names, Place::Other)?;
            match body.bytes_max(names.data) {
                bytes if bytes > BODY_BYTES_MAX => Err(too_large(bytes)),
                _ => Ok(Content::Written(body)),
            }
        }
        Body::Bytes(bytes) if bytes.len() > BODY_BYTES_MAX => Err(too_large(bytes.len())),
        Body::Bytes(bytes) if bytes.len() > BODY_COPIED_MAX => {
            Ok(Content::Large(Arc::clone(bytes)))
        }
        Body::Bytes(bytes) => Ok(Content::Written(Template::fixed(bytes.to_vec()))),
    }
}

/// Refuses fields that contradict how requests are sent.
fn check_fields(fields: &[(String, String)], cookies: bool) -> Result<(), String> {
    for single in ["host", "authorization"] {
        let named = fields.iter();
        let count = named.filter(|(name, _)| name.eq_ignore_ascii_case(single));
        if count.count() > 1 {
            return Err(format!(
                "the request has more than one {single} header, which servers reject or resolve to one of them (RFC \
                 9112 3.2, RFC 9110 5.3): give one, with -H, -u, --bearer or the file"
            ));
        }
    }
    for (name, value) in fields {
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(format!(
                "header {name:?} announces a chunked body, but bodies are sent whole: leave it out"
            ));
        }
        if name.eq_ignore_ascii_case("content-length") && value != "0" {
            return Err(format!(
                "header {name:?} announces a body: give the body with --body or --body-file, and its length is computed"
            ));
        }
        if cookies && name.eq_ignore_ascii_case("cookie") {
            return Err(format!(
                "header {name:?} and --cookies both set cookies: leave one of them out"
            ));
        }
    }
    Ok(())
}

/// Refuses data that is not valid where `text` is used.
fn check_values(
    text: &str,
    names: Names<'_>,
    place: &str,
    fits: impl Fn(&[u8]) -> bool + Copy,
) -> Result<(), String> {
    let Some(data) = names.data else {
        return Ok(());
    };
    let text = Template::parse(text, names, Place::Other)?;
    let columns: Vec<usize> = text.columns().collect();
    columns
        .into_iter()
        .try_for_each(|column| data.check(column, place, fits))
}

#[cfg(test)]
mod tests;
