//! Flags and files that define the requests.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onrush_load::grpc::descriptors::Descriptors;
use onrush_load::journey;
use onrush_load::limits::{ACCESS_LOG_BYTES_MAX, BODY_BYTES_MAX, REQUESTS_BYTES_MAX};
use onrush_load::pace::Pace;
use onrush_load::pace::arrivals::ArrivalPlan;
use onrush_load::plan::Options;
use onrush_load::requests::data::Data;
use onrush_load::requests::header::parse_header;
use onrush_load::requests::{
    Body, Expect, Order, Request, RequestOptions, Statuses, access_log, lines,
};
use onrush_load::target::Target;
use onrush_measure::amount;

use super::{grpc, recording};

/// What is sent.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Requests")]
pub(super) struct RequestArgs {
    /// Send this header, 'Name: value'; repeatable. A Host replaces the URL's
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = parse_header)]
    pub(super) headers: Vec<(String, String)>,

    /// Use this method [default: GET, or POST with a body]
    #[arg(short = 'X', long, hide_short_help = true)]
    method: Option<String>,

    /// Send this body, or that of a file with @FILE
    ///
    /// For gRPC, the message as JSON. {{counter}}, {{random:1-1000}} and {{data:COLUMN}} are replaced in the text, in URLs and in headers; a file is sent unchanged
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,

    /// Send the body in this file unchanged; for gRPC, the bytes of the message
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    body_file: Option<PathBuf>,

    /// Descriptor set for gRPC messages written as JSON, from protoc --include_imports --descriptor_set_out=FILE
    #[arg(
        long,
        visible_alias = "protoset",
        value_name = "FILE",
        hide_short_help = true
    )]
    descriptors: Option<PathBuf>,

    /// Weight of each URL in the mix, in their order, such as 8,1,1
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = weight, conflicts_with_all = ["requests_file", "har", "replay"], hide_short_help = true)]
    weights: Vec<NonZeroU32>,

    /// Send the requests in this file, one JSON object per line: url, method, headers, body or body_file (gRPC: message), weight, expect
    #[arg(long, value_name = "FILE", conflicts_with_all = ["har", "replay", "body", "body_file", "method"], hide_short_help = true)]
    requests_file: Option<PathBuf>,

    /// TOML file of journeys: requests in order, later ones with values from earlier responses (docs/journeys.md). -c is the number of users, -n counts journeys, -R is journeys started per second
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests_file", "har", "replay", "weights", "in_turn", "cookies", "body", "body_file", "method", "expect_status", "expect_body"], hide_short_help = true)]
    journeys: Option<PathBuf>,

    /// Send the requests of a HAR file (recorded by a browser) that go to the URL's server, in order
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "body", "body_file", "method"], hide_short_help = true)]
    har: Option<PathBuf>,

    /// Replay the GET, HEAD and OPTIONS requests of an access log (common or combined format), at their times
    #[arg(long, value_name = "FILE", conflicts_with_all = ["body", "body_file", "method", "rate", "stairs", "burst", "rate_per_connection", "think", "ramp", "soft_start"], hide_short_help = true)]
    replay: Option<PathBuf>,

    /// Speed of the replay relative to the log, such as 10 or 0.5 [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = speed, requires = "replay", hide_short_help = true)]
    replay_speed: Option<f64>,

    /// Send requests in the order of the file or the URLs over the whole run, instead of at random by weight
    #[arg(long, conflicts_with_all = ["weights", "replay"], hide_short_help = true)]
    in_turn: bool,

    /// CSV file for {{data:COLUMN}}; its first line names the columns. Request n of the run uses row n
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    data: Option<PathBuf>,

    /// Store the cookies that each connection receives, and send them on it
    #[arg(long, hide_short_help = true)]
    cookies: bool,

    /// Authenticate as this user (basic authentication)
    #[arg(
        hide_short_help = true,
        short = 'u',
        long,
        value_name = "NAME:PASSWORD",
        conflicts_with = "bearer"
    )]
    user: Option<String>,

    /// Send this token (bearer authentication)
    #[arg(long, value_name = "TOKEN", hide_short_help = true)]
    bearer: Option<String>,

    /// Expect these statuses, such as 200,204 or 2xx (gRPC: OK,NOT_FOUND); others are errors
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Statuses::parse, hide_short_help = true)]
    expect_status: Vec<Statuses>,

    /// Expect this text in the body of each response; a response without it is an error
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    expect_body: Option<String>,
}

/// Result of reading the files.
#[derive(Default)]
pub(super) struct RequestFiles {
    pub(super) files: Vec<PathBuf>,
    /// Notes on what was left out.
    pub(super) notes: Vec<String>,
}

fn weight(text: &str) -> Result<NonZeroU32, String> {
    let most = u32::MAX;
    let weight = amount::count(text)
        .ok()
        .and_then(|count| u32::try_from(count).ok());
    weight.and_then(NonZeroU32::new).ok_or_else(|| {
        format!("{text:?} is not a weight: expected a whole number from 1 to {most}")
    })
}

fn speed(text: &str) -> Result<f64, String> {
    let expected =
        || format!("{text:?} is not a speed: expected a factor above 0 such as 10 or 0.5");
    let factor = amount::number(text).map_err(|_| expected())?;
    if factor > 0.0 {
        Ok(factor)
    } else {
        Err(expected())
    }
}

impl RequestArgs {
    /// The first of these flags that is given.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let flags = [
            ("--header", !self.headers.is_empty()),
            ("--method", self.method.is_some()),
            ("--body", self.body.is_some()),
            ("--body-file", self.body_file.is_some()),
            ("--descriptors", self.descriptors.is_some()),
            ("--weights", !self.weights.is_empty()),
            ("--requests-file", self.requests_file.is_some()),
            ("--journeys", self.journeys.is_some()),
            ("--har", self.har.is_some()),
            ("--replay", self.replay.is_some()),
            ("--in-turn", self.in_turn),
            ("--data", self.data.is_some()),
            ("--cookies", self.cookies),
            ("--user", self.user.is_some()),
            ("--bearer", self.bearer.is_some()),
            ("--expect-status", !self.expect_status.is_empty()),
            ("--expect-body", self.expect_body.is_some()),
        ];
        let mut given = flags.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(flag, _)| flag)
    }

    fn files(&self) -> Vec<PathBuf> {
        let body = self.body.as_deref().and_then(|body| body.strip_prefix('@'));
        let named = [
            &self.body_file,
            &self.descriptors,
            &self.requests_file,
            &self.journeys,
            &self.har,
            &self.replay,
            &self.data,
        ];
        let named = named.into_iter().flatten().cloned();
        named.chain(body.map(PathBuf::from)).collect()
    }

    /// Flags that gRPC calls do not have, and whether they are given.
    fn of_http(&self) -> [(&'static str, bool); 3] {
        [
            ("--method", self.method.is_some()),
            ("--har", self.har.is_some()),
            ("--replay", self.replay.is_some()),
        ]
    }

    pub(super) fn descriptors(&self) -> Result<Option<Descriptors>, String> {
        self.descriptors
            .as_deref()
            .map(grpc::descriptors)
            .transpose()
    }

    /// Fills in the requests to the servers of `urls`, which is not empty.
    pub(super) fn apply(
        self,
        urls: &[Target],
        options: &mut Options,
    ) -> Result<RequestFiles, String> {
        grpc::check_flags(&urls[0], &self.of_http())?;
        let mut notes = Vec::new();
        let mut files = self.files();
        options.headers.clone_from(&self.headers);
        options.headers.extend(self.authorization()?);
        options.requests = RequestOptions {
            requests: Vec::new(),
            data: self.data.as_deref().map(data).transpose()?,
            cookies: self.cookies,
            ..RequestOptions::default()
        };
        if self.in_turn || self.har.is_some() {
            options.requests.order = Order::RoundRobin;
        }
        options.requests.requests = match (&self.requests_file, &self.har, &self.replay) {
            (Some(path), ..) => {
                only_one(urls, "--requests-file")?;
                let lines = lines::parse(&read(path, REQUESTS_BYTES_MAX)?, path, &urls[0])?;
                files.extend(lines.files);
                lines.requests
            }
            (_, Some(path), _) => {
                only_one(urls, "--har")?;
                let text = read(path, REQUESTS_BYTES_MAX)?;
                recording::requests(&text, &shown(path), &urls[0], &mut notes)?
            }
            (.., Some(path)) => {
                only_one(urls, "--replay")?;
                self.replay(path, &urls[0], options, &mut notes)?
            }
            (None, None, None) => match &self.journeys {
                Some(path) => {
                    only_one(urls, "--journeys")?;
                    let found = journey::parse(&read(path, REQUESTS_BYTES_MAX)?, path, &urls[0])?;
                    files.extend(found.files);
                    options.requests.cookies = true;
                    options.requests.taken = found.journeys.value_names();
                    options.journeys = Some(Arc::new(found.journeys));
                    found.requests
                }
                None => self.of_urls(urls)?,
            },
        };
        for request in &mut options.requests.requests {
            // Expectations in a file take precedence over the flags.
            if request.expect.statuses.is_empty() {
                request.expect.statuses.clone_from(&self.expect_status);
            }
            if request.expect.body.is_none() {
                request.expect.body.clone_from(&self.expect_body);
            }
        }
        Ok(RequestFiles { files, notes })
    }

    fn authorization(&self) -> Result<Option<(String, String)>, String> {
        let value = match (&self.user, &self.bearer) {
            (Some(user), _) if !user.contains(':') => {
                return Err(format!("{user:?} has no password: expected NAME:PASSWORD"));
            }
            (Some(user), _) => format!("Basic {}", STANDARD.encode(user)),
            (None, Some(token)) => format!("Bearer {token}"),
            (None, None) => return Ok(None),
        };
        parse_header(&format!("Authorization: {value}")).map(Some)
    }

    fn body(&self, url: &Target) -> Result<Body, String> {
        match (&self.body, &self.body_file) {
            (Some(text), _) => match text.strip_prefix('@') {
                None => Ok(Body::Text(text.clone())),
                // `@@` starts a literal body that begins with `@`.
                Some(rest) if rest.starts_with('@') => Ok(Body::Text(rest.to_owned())),
                Some(path) if url.scheme.is_grpc() => {
                    read(Path::new(path), BODY_BYTES_MAX as u64).map(Body::Text)
                }
                Some(path) => body_of_file(Path::new(path)),
            },
            (None, Some(path)) => body_of_file(path),
            (None, None) => Ok(Body::None),
        }
    }

    fn of_urls(&self, urls: &[Target]) -> Result<Vec<Request>, String> {
        if !self.weights.is_empty() && self.weights.len() != urls.len() {
            return Err(format!(
                "--weights has {} numbers for {} URLs: expected one for each URL",
                self.weights.len(),
                urls.len()
            ));
        }
        let body = self.body(&urls[0])?;
        let method = match &self.method {
            Some(method) => method,
            None => lines::method_for(&body),
        };
        let weights = self
            .weights
            .iter()
            .copied()
            .chain(std::iter::repeat(NonZeroU32::MIN));
        let requests = urls.iter().zip(weights).map(|(url, weight)| {
            let first = &urls[0];
            if (url.scheme, &url.place) != (first.scheme, &first.place) {
                return Err(format!(
                    "{} and {} are on different servers, and a run connects to one: start one run per server at the same time, and combine them with onrush load merge",
                    first.url, url.url
                ));
            }
            Ok(Request {
                method: method.to_owned(),
                body: body.clone(),
                weight,
                expect: Expect::default(),
                ..Request::of(url)
            })
        });
        requests.collect()
    }

    fn replay(
        &self,
        path: &Path,
        target: &Target,
        options: &mut Options,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Request>, String> {
        let replay = access_log::parse(
            &read(path, ACCESS_LOG_BYTES_MAX)?,
            &shown(path),
            target,
            self.replay_speed.unwrap_or(1.0),
        )?;
        if replay.unsafe_methods > 0 {
            notes.push(format!(
                "skipped {} of the log: unsafe method, and the body is not in the log",
                recording::counted(replay.unsafe_methods)
            ));
        }
        if replay.unreadable > 0 {
            notes.push(format!(
                "skipped {} of the log: not a request that can be sent",
                match replay.unreadable {
                    1 => "1 line".to_owned(),
                    count => format!("{count} lines"),
                }
            ));
        }
        options.requests.order = Order::Listed(replay.order);
        options.pace = Pace::Open(ArrivalPlan::Listed(replay.times));
        options.connecting = onrush_load::plan::Connecting::Before;
        Ok(replay.requests)
    }
}

fn body_of_file(path: &Path) -> Result<Body, String> {
    let bytes = onrush_file::read(path, BODY_BYTES_MAX as u64);
    let bytes = bytes.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Body::Bytes(bytes.into()))
}

/// Refuses several URLs: requests listed in a file go to one server.
fn only_one(urls: &[Target], flag: &str) -> Result<(), String> {
    match urls {
        [_] => Ok(()),
        _ => Err(format!(
            "{flag} defines the requests: pass exactly one URL, the server to connect to"
        )),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn read(path: &Path, bytes_max: u64) -> Result<String, String> {
    onrush_file::read_text(path, bytes_max).map_err(|error| format!("{}: {error}", path.display()))
}

fn data(path: &Path) -> Result<Data, String> {
    Data::parse(&read(path, REQUESTS_BYTES_MAX)?, &shown(path))
}
