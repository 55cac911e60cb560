//! Flags of HTTP/2.

use onrush_load::target::Target;

use onrush_measure::amount::count;

/// Whether HTTP/2 is spoken, and how.
#[derive(clap::Args, Debug)]
pub(super) struct Http2Args {
    /// Use HTTP/2 (h2 over https, h2c over http)
    ///
    /// h2 is negotiated by ALPN, h2c is used with prior knowledge; without a value, the scheme of the URL decides
    #[arg(long, value_name = "h2|h2c", value_enum, num_args = 0..=1, require_equals = true)]
    http2: Option<Option<Kind>>,

    /// Keep this many streams (requests) of HTTP/2 or gRPC open on each connection [default: 1]
    #[arg(short = 'm', long, value_name = "COUNT", value_parser = count, conflicts_with = "connections_per_second", hide_short_help = true)]
    streams: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Kind {
    H2,
    #[value(name = "h2c")]
    H2c,
}

impl Http2Args {
    /// Concurrent requests per HTTP/2 connection to `target`; `None` for HTTP/1.1.
    pub(super) fn streams(&self, target: &Target) -> Result<Option<u64>, String> {
        let url = &target.url;
        let kind = match (self.http2, self.streams) {
            (None, streams) if target.scheme.is_grpc() => return Ok(Some(streams.unwrap_or(1))),
            (None, None) => return Ok(None),
            (None, Some(_)) => {
                return Err(format!(
                    "--streams is only for HTTP/2, and {url} uses HTTP/1.1: add --http2, or remove --streams"
                ));
            }
            (Some(kind), _) => kind,
        };
        if target.scheme.is_grpc() {
            return Err(format!(
                "--http2 has no effect: {url} always uses HTTP/2; remove it"
            ));
        }
        if !target.scheme.is_http() {
            return Err(format!(
                "--http2 is only for HTTP, and {url} is another protocol: remove it"
            ));
        }
        match (kind, target.scheme.has_tls()) {
            (Some(Kind::H2), false) => Err(format!(
                "--http2=h2 is negotiated in TLS, and {url} has no TLS: use https://, or --http2=h2c"
            )),
            (Some(Kind::H2c), true) => Err(format!(
                "--http2=h2c is cleartext, and {url} uses TLS: use http://, or --http2=h2"
            )),
            _ => Ok(Some(self.streams.unwrap_or(1))),
        }
    }
}
