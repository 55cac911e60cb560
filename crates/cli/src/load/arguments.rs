//! Flags of `onrush load`, and the options of a run that they set.

use std::time::Duration;

use onrush_load::Io;
use onrush_load::error::Error;
use onrush_load::limits::{ECHO_TIMEOUT_DEFAULT, TIMEOUT_DEFAULT};
use onrush_load::pace::Pace;
use onrush_load::pace::arrivals::ArrivalPlan;
use onrush_load::plan::Options;
use onrush_load::stop::Stop;
use onrush_load::target::Target;
use onrush_load::threshold::Threshold;
use onrush_measure::amount::{count, duration};

use super::output::{self, Output};
use super::value::{Cpus, cpus, duration_or_seconds, io_driver};
use super::{connection_flags, datagrams, grpc, http2, memcached, pace, requests, results};

/// Default length of a run: wrk's.
pub(super) const DURATION_DEFAULT: Duration = Duration::from_secs(10);

const AFTER_HELP: &str = "\
Examples:
  onrush load -c 100 -d 30s http://10.0.0.1:8080/           full speed of 100 connections
  onrush load -c 100 -R 20k -d 30s http://10.0.0.1:8080/    20,000 requests per second
  onrush load --find-max 'p99 < 5ms' -R 1k -c 100 http://10.0.0.1:8080/
  onrush load --http2 -m 10 https://shop.example/ --json result.json

Exit codes: 0 success; 1 usage error, or not possible on this machine; 2 the target cannot be reached; 3 errors during \
the run, unless --fail-if limits them, or wrong figures in the self-test; 4 a condition of --fail-if holds or cannot be \
judged, or --find-max found no rate; 5 invalid run: the figures are not reliable, see the verdict.

Prints one line per second: time, connections open, connections attempted, requests finished, bytes received and errors \
so far; connections, requests, bytes and bits per second; mean time to the first and to the last byte. Ctrl-C ends the \
run early and prints the summary.

A request is sent again, and not counted as an error, if the server closed a kept-alive connection with a FIN that \
acknowledges nothing of the request. A reset is an error, since the server may have read the request. Latencies are \
measured from the intended start of a request to its response.";

/// Flags that the self-test ignores: all but --io. A test keeps the list complete.
const FLAGS_IGNORED_BY_SELFTEST: [&str; 91] = [
    "response_size",
    "urls",
    "connections",
    "threads",
    "duration",
    "count",
    "requests",
    "pipeline",
    "http2",
    "streams",
    "timeout",
    "skip_first",
    "headers",
    "method",
    "body",
    "body_file",
    "weights",
    "requests_file",
    "journeys",
    "har",
    "replay",
    "replay_speed",
    "in_turn",
    "data",
    "descriptors",
    "cookies",
    "user",
    "bearer",
    "expect_status",
    "expect_body",
    "protocol",
    "ratio",
    "keys",
    "key_distribution",
    "key_size",
    "value_size",
    "expiry",
    "populate",
    "hit_ratio",
    "multiget",
    "gets",
    "verify",
    "rate",
    "connections_per_second",
    "spacing",
    "stairs",
    "burst",
    "rate_per_connection",
    "think",
    "ramp",
    "soft_start",
    "warm_up",
    "connect_first",
    "catch_up",
    "start_at",
    "shard",
    "seed",
    "source",
    "source_ports",
    "connect_to",
    "proxy_protocol",
    "insecure",
    "cacert",
    "cert",
    "key",
    "sni",
    "tls_resume",
    "tls_versions",
    "udp",
    "tls_ciphers",
    "tls_groups",
    "json",
    "csv",
    "html",
    "hdr",
    "metrics",
    "fail_if",
    "stop_if",
    "live",
    "quiet",
    "busy_poll",
    "cpus",
    "find_max",
    "size",
    "one_way",
    "round_trip",
    "send",
    "via",
    "interface",
    "depth",
    "bandwidth",
];

/// Makes requests over HTTP/1.1 or HTTP/2, calls of gRPC, or requests to memcached, and reports rate, errors and latencies.
#[derive(clap::Args, Debug)]
#[command(
    after_help = AFTER_HELP,
    next_display_order = 10,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) results: Option<Results>,

    // Not a doc comment: rustdoc would read the brackets as a link.
    #[arg(help = "Target, such as http://10.0.0.1:8080/path; also https, unix, grpc, memcached, udp, tcp", long_help = "Target: http[s]://host[:port]/path?query, unix:/path/to/socket:/path, grpc[s]://host[:port]/package.Service/Method, memcached[s]://host[:port] or memcached://unix:/path/to/socket. Several URLs of one HTTP server are requested in a mix (--weights). udp://host:port sends datagrams, tcp://host:port sends bytes to an echo, or to a sink with --one-way", value_name = "URL", value_parser = Target::parse, required_unless_present_any = ["selftest", "as_tool"])]
    pub(super) urls: Vec<Target>,

    /// Test this program on this machine: measure an own server with known delays and check the reported figures
    #[arg(long, conflicts_with_all = FLAGS_IGNORED_BY_SELFTEST, hide_short_help = true)]
    pub(super) selftest: bool,

    /// Run the command line of another tool: wrk, wrk2, h1load, h2load, oha, hey or mcblaster
    ///
    /// All following arguments are options of that tool, and the output has its format; -h after its name lists them
    #[arg(long = "as", value_name = "TOOL", num_args = 1.., allow_hyphen_values = true, exclusive = true, hide_short_help = true)]
    pub(super) as_tool: Vec<String>,

    /// Open this many connections, over all threads
    #[arg(short, long, display_order = 0, value_name = "COUNT", default_value = "1", value_parser = count)]
    pub(super) connections: u64,

    /// Use this many threads, at most one per connection
    #[arg(short, long, display_order = 4, value_name = "COUNT", default_value = "1", value_parser = count)]
    pub(super) threads: u64,

    /// Run this long, such as 30s or 2m [default: 10s, unless -n is given]
    ///
    /// The unit is ms, s, m or h; a bare number is seconds
    #[arg(short, long, display_order = 2, value_name = "TIME", value_parser = duration_or_seconds)]
    pub(super) duration: Option<Duration>,

    /// Stop after this many requests, such as 5000, 10k or 1m
    ///
    /// With -d, the run ends at the earlier of the two
    #[arg(short = 'n', display_order = 3, long = "count", value_name = "COUNT", value_parser = count)]
    pub(super) count: Option<u64>,

    /// Close each connection after this many requests; the last one carries Connection: close
    #[arg(short, long, value_name = "COUNT", value_parser = count, conflicts_with = "connections_per_second", hide_short_help = true)]
    pub(super) requests: Option<u64>,

    /// Send this many requests on a connection before the first response; with --udp, requests in flight per socket
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = count, conflicts_with = "connections_per_second", hide_short_help = true)]
    pub(super) pipeline: u64,

    #[command(flatten)]
    pub(super) http2: http2::Http2Args,

    /// Fail a request after this time without data while its response is due, such as 500ms [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    pub(super) timeout: Option<Duration>,

    /// Exclude the first response of each connection from latencies (it includes one-time work)
    #[arg(long, hide_short_help = true)]
    pub(super) skip_first: bool,

    #[command(flatten)]
    pub(super) asked: requests::RequestArgs,

    #[command(flatten)]
    pub(super) memcached: memcached::MemcachedArgs,

    #[command(flatten)]
    pub(super) pace: pace::PaceArgs,

    #[command(flatten)]
    pub(super) reach: connection_flags::ConnectionArgs,

    #[command(flatten)]
    pub(super) packets: datagrams::PacketArgs,

    /// Use this kernel interface: auto, epoll or io_uring
    #[arg(long, help_heading = "Threads", default_value = "auto", value_parser = io_driver, hide_short_help = true)]
    pub(super) io: Io,

    /// Busy-poll instead of sleeping, so that latencies include no wake-up of this machine; uses a whole CPU per thread
    #[arg(long, help_heading = "Threads", hide_short_help = true)]
    pub(super) busy_poll: bool,

    /// Pin the threads to these CPUs, in turn, such as 0,2-3
    #[arg(long, help_heading = "Threads", value_name = "LIST", value_parser = cpus, hide_short_help = true)]
    pub(super) cpus: Option<Cpus>,

    #[command(flatten)]
    pub(super) output: Output,

    /// Search for the highest rate at which this holds, such as 'p99 < 1ms'
    ///
    /// Makes several runs of -d each, starting at -R
    #[arg(long, help_heading = "Results", value_name = "CONDITION", value_parser = output::threshold, conflicts_with_all = ["fail_if", "stop_if", "count", "live", "csv", "hdr", "start_at", "stairs", "burst", "rate_per_connection", "think", "shard", "replay", "journeys", "catch_up", "metrics"])]
    pub(super) find_max: Option<Threshold>,
}

/// Merges and compares results.
#[derive(clap::Subcommand, Debug)]
pub(super) enum Results {
    Merge(results::Merge),
    Compare(results::Compare),
}

impl Args {
    /// Options of a run against `urls`, and what was read from files.
    pub(super) fn options(
        self,
        urls: &[Target],
    ) -> Result<(Options, requests::RequestFiles), Error> {
        let paced = self.pace.paced().map_err(Error::Invalid)?;
        let after = match (self.duration, self.count) {
            (None, None) => paced.duration.or(Some(DURATION_DEFAULT)),
            (after, _) => after,
        };
        let mut options = Options {
            // A number that does not fit `usize` exceeds the limit of the plan, too.
            connections: usize::try_from(self.connections).unwrap_or(usize::MAX),
            threads: usize::try_from(self.threads).unwrap_or(usize::MAX),
            cpus: self.cpus.map(|Cpus(cpus)| cpus).unwrap_or_default(),
            io: self.io,
            busy_poll: self.busy_poll,
            skip_first: self.skip_first,
            stop: Stop {
                after,
                count: self.count,
            },
            pace: paced.pace,
            start: paced.start,
            warm_up: paced.warm_up,
            connecting: paced.connecting,
            catch_up: paced.catch_up,
            start_at: paced.start_at,
            shard: paced.shard,
            seed: paced.seed,
            requests_per_connection: self.requests.or(paced.requests_per_connection),
            pipeline: self.pipeline,
            streams: self.http2.streams(&urls[0]).map_err(Error::Invalid)?,
            bytes: self.packets.bytes().map_err(Error::Invalid)?,
            descriptors: self.asked.descriptors().map_err(Error::Invalid)?,
            timeout: self.timeout.unwrap_or(match self.memcached.udp {
                true => ECHO_TIMEOUT_DEFAULT,
                false => TIMEOUT_DEFAULT,
            }),
            ..Options::new(urls[0].clone())
        };
        let mut found =
            requested(self.asked, self.memcached, urls, &mut options).map_err(Error::Invalid)?;
        if let Some(time) = self.timeout {
            grpc::add_grpc_timeout(&mut options, time);
        }
        found.files.extend(self.reach.files().cloned());
        let reach = self.reach.reach(&options.target);
        options.reach = reach.map_err(Error::Invalid)?;
        if let Pace::Open(ArrivalPlan::Listed(times)) = &options.pace {
            // The end of the log ends the run, unless --duration or --count ends it earlier.
            options.stop.after = self.duration;
            options.stop.count = Some(self.count.unwrap_or(times.len() as u64));
        }
        Ok((options, found))
    }
}

/// Fills in the requests by the flags of the protocol of `urls`; flags of the other protocol are refused.
fn requested(
    http: requests::RequestArgs,
    memcached: memcached::MemcachedArgs,
    urls: &[Target],
    options: &mut Options,
) -> Result<requests::RequestFiles, String> {
    if urls.iter().all(|url| url.scheme.is_http()) {
        return match memcached.first_given() {
            None => http.apply(urls, options),
            Some(flag) => Err(format!(
                "{flag} is only for memcached, and {} is another protocol: use memcached://, or remove the option",
                urls[0].url
            )),
        };
    }
    let has_no_flags = |url: &&Target| !url.scheme.is_http() && !url.scheme.is_memcached();
    if let Some(url) = urls.iter().find(has_no_flags) {
        return match (http.first_given().or(memcached.first_given()), urls) {
            (Some(flag), _) => Err(format!(
                "{flag} does not apply to {}: remove the option",
                url.url
            )),
            (None, [_]) => Ok(requests::RequestFiles::default()),
            (None, _) => Err(format!(
                "{}:// takes one URL: start one run per URL at the same time",
                url.scheme.name()
            )),
        };
    }
    options.memcached = memcached.asks(urls, http.first_given())?;
    Ok(requests::RequestFiles::default())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn options(line: &str) -> Result<Options, String> {
        let words = std::iter::once("load").chain(line.split(' '));
        let mut line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        let urls = std::mem::take(&mut line.args.urls);
        let options = line.args.options(&urls).map_err(|error| error.to_string());
        options.map(|(options, _)| options)
    }

    #[test]
    fn self_test_refuses_ignored_flags() {
        let command = <Line as clap::Args>::augment_args(clap::Command::new("load"));
        let ids: Vec<&str> = command
            .get_arguments()
            .map(|argument| argument.get_id().as_str())
            .filter(|id| !["selftest", "io", "as_tool", "help", "version"].contains(id))
            .collect();
        let mut listed = FLAGS_IGNORED_BY_SELFTEST.to_vec();
        listed.sort_unstable();
        let mut all = ids.clone();
        all.sort_unstable();
        assert_eq!(listed, all);
        for line in [
            "--selftest -c 1",
            "--selftest http://a/",
            "--selftest --json a",
            "--selftest -k",
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains("cannot be used with"), "{line}: {error}");
        }
    }

    #[test]
    fn search_refuses_explicit_pace_flags() {
        for flag in [
            "--burst 5/1s",
            "--stairs 1:2:1/1s",
            "-T 5",
            "--rate-per-connection 5",
            "--shard 1/2",
            "--replay a",
        ] {
            let line = format!("--find-max p99<1ms {flag} http://a/");
            let error = options(&line).unwrap_err();
            assert!(error.contains("cannot be used with"), "{line}: {error}");
        }
        let error = options("--replay-speed 2 http://a/").unwrap_err();
        assert!(error.contains("--replay <FILE>"), "{error}");
    }

    #[test]
    fn default_is_single_connection_for_ten_seconds() {
        let options = options("http://a/").unwrap();
        assert_eq!((options.connections, options.threads), (1, 1));
        assert_eq!(options.stop.after, Some(DURATION_DEFAULT));
        assert_eq!(options.pace, Pace::Closed);
    }

    #[test]
    fn count_without_duration_has_no_time_limit() {
        let stop = options("-n 10k http://a/").unwrap().stop;
        assert_eq!((stop.after, stop.count), (None, Some(10_000)));
        let stop = options("-n 1 -d 2m http://a/").unwrap().stop;
        assert_eq!(
            (stop.after, stop.count),
            (Some(Duration::from_secs(120)), Some(1))
        );
    }

    #[test]
    fn times_without_unit_are_seconds() {
        let options = options("-d 5 --timeout 500ms http://a/").unwrap();
        assert_eq!(options.stop.after, Some(Duration::from_secs(5)));
        assert_eq!(options.timeout, Duration::from_millis(500));
    }

    #[test]
    fn translated_command_lines_are_equivalent() {
        let wrk = options("-t2 -c100 -d30s http://a/").unwrap();
        assert_eq!((wrk.threads, wrk.connections), (2, 100));
        let h1load = options("-t 4 -c 16 -r 5 -d 3 -R 1000 http://a:80/").unwrap();
        assert_eq!(h1load.requests_per_connection, Some(5));
        assert_eq!(h1load.pace, Pace::rate(NonZeroU64::new(1000).unwrap()));
    }

    #[test]
    fn flags_of_other_protocol_are_refused() {
        for flag in [
            "-H a:b",
            "-X PUT",
            "--body x",
            "--body-file x",
            "--weights 1",
            "--requests-file x",
            "--har x",
            "--replay x",
            "--in-turn",
            "--data x",
            "--cookies",
            "-u a:b",
            "--bearer x",
            "--expect-status 200",
            "--expect-body x",
        ] {
            let error = options(&format!("memcached://a {flag}")).unwrap_err();
            assert!(
                error.contains("is only for HTTP, and memcached://a uses memcached"),
                "{flag}: {error}"
            );
        }
        for flag in [
            "--protocol meta",
            "--udp",
            "--ratio 9:1",
            "--keys 5",
            "--key-distribution uniform",
            "--key-size 20",
            "--value-size 20",
            "--expiry 5s",
            "--populate",
            "--hit-ratio 1",
            "--multiget 2",
            "--gets",
            "--verify",
        ] {
            let name = flag.split(' ').next().unwrap();
            let error = options(&format!("http://a {flag}")).unwrap_err();
            assert!(
                error.contains(&format!("{name} is only for memcached")),
                "{flag}: {error}"
            );
            options(&format!("memcached://a {flag}")).unwrap();
        }
        let error = options("memcached://a memcached://b").unwrap_err();
        assert!(error.contains("a second URL"), "{error}");
        let error = options("http://a memcached://b").unwrap_err();
        assert!(error.contains("a second URL"), "{error}");
        let error = options("memcached://a -k").unwrap_err();
        assert!(error.contains("use memcacheds://"), "{error}");
    }

    #[test]
    fn malformed_values_are_refused_with_reason() {
        for (line, part) in [
            ("http://a/ -d x", "is not a duration"),
            ("http://a/ -n x", "is not a count"),
            (
                "http://a/ --timeout 5",
                "a number and its unit, such as 250ms",
            ),
            ("http://a/ -R 0", "a rate is above 0"),
            ("http://a/ --io kqueue", "unknown driver"),
            ("http://a/ --cpus x", "is not a list of CPUs"),
            ("http://a/ -H x", "is not a header"),
            ("http://a/ --weights 0", "expected a whole number from 1"),
            (
                "http://a/ --burst 10/0s",
                "expected COUNT of at least 1 and TIME above 0",
            ),
            ("ftp://a/", "does not begin with http://"),
            ("/a", "does not begin with http://"),
            (
                "memcached://a --protocol binary",
                "deprecated it since 1.6.0",
            ),
            ("memcached://a --ratio x", "is not a ratio"),
            ("memcached://a --expiry 500ms", "expected whole seconds"),
            ("memcached://a --hit-ratio 2", "is not a share"),
            ("memcached://a --key-size 251", "is not a size of keys"),
            (
                "memcached://a --key-distribution gauss",
                "is not a key distribution",
            ),
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
