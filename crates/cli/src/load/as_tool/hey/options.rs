//! The options of hey and oha that are no flags of ours: what is said of them.

pub(super) const HELP_HEY: &str = "\
onrush load --as hey [option]... URL

  -n COUNT               requests in all (200)
  -c COUNT               connections (50)
  -z TIME                how long the run takes, instead of -n
  -q RATE                requests per second on each connection (no bound)
  -m METHOD              the method (GET)
  -H 'Name: value'       a header to send; repeatable
  -A TYPES, -T TYPE      Accept, Content-Type (text/html)
  -d TEXT, -D FILE       the body
  -a USER:PASSWORD       basic authentication
  -t SECONDS             how long nothing may arrive while a response is due; 0 is without end (20)
  -host NAME             Host
  -cpus COUNT            threads (1)
  -h2                    HTTP/2 over https://, the requests of all connections over one
  -disable-keepalive     a connection for each request
  -disable-compression   no Accept-Encoding
  -disable-redirects     has no effect: redirects are not followed
  -v                     say on standard error which command line of onrush load this is
";

pub(super) const HELP_OHA: &str = "\
onrush load --as oha [option]... URL

  -n COUNT               requests in all (200)
  -c COUNT               connections (50)
  -z TIME                how long the run takes, instead of -n
  -q RATE                requests per second in all (no bound); latency counts from the intended start
  --burst-rate COUNT --burst-delay TIME
                         so many requests at once, again and again
  -m METHOD              the method (GET)
  -H 'Name: value'       a header to send; repeatable
  -A TYPES, -T TYPE      Accept, Content-Type
  -d TEXT, -D FILE       the body
  -a USER:PASSWORD       basic authentication
  -t TIME                how long nothing may arrive while a response is due (without end)
  --host NAME            Host
  --worker-threads COUNT threads (1)
  --http2, --http-version 2, -p COUNT
                         HTTP/2, with so many requests of a connection at once (1)
  --disable-keepalive    a connection for each request
  --disable-compression  no Accept-Encoding
  --unix-socket PATH     connect there
  --cacert, --cert, --key FILE, --insecure
                         as onrush load has them
  -w, --no-tui, --no-color, --fps, -u, --stats-success-breakdown, --latency-correction, --no-pre-lookup,
  --connect-timeout      have no effect here
  -v                     say on standard error which command line of onrush load this is
";

/// Options of one of them that have no equal, and the way there is.
pub(super) const REFUSED: [(&str, &str); 17] = [
    ("x", "there is no way through an HTTP proxy"),
    (
        "o",
        "use onrush load itself, which writes --json, --csv and --html",
    ),
    (
        "output",
        "use onrush load itself, which writes --json, --csv and --html",
    ),
    (
        "output-format",
        "use onrush load itself, which writes --json, --csv and --html",
    ),
    (
        "r",
        "redirects are followed by journeys: onrush load --journeys",
    ),
    (
        "redirect",
        "redirects are followed by journeys: onrush load --journeys",
    ),
    (
        "rand-regex-url",
        "{{random:1-1000}} and {{data:COLUMN}} in a URL of onrush load make it another each time",
    ),
    (
        "urls-from-file",
        "name several URLs to onrush load, or a --requests-file",
    ),
    (
        "Z",
        "use --data of onrush load with {{data:COLUMN}} in the --body",
    ),
    (
        "F",
        "write the form to a file and send it by -D, with its Content-Type by -T",
    ),
    (
        "form",
        "write the form to a file and send it by -D, with its Content-Type by -T",
    ),
    ("db-url", "use onrush load itself, which writes --json"),
    ("debug", "use curl -v for a single request"),
    ("connect-to", "use --connect-to HOST:PORT of onrush load"),
    ("ipv4", "name the address to --connect-to of onrush load"),
    ("ipv6", "name the address to --connect-to of onrush load"),
    ("aws-sigv4", "requests are not signed"),
];

/// The value behind an option of them that has one and makes no difference here; its name otherwise.
pub(super) const WITHOUT_EFFECT: [(&str, Takes); 11] = [
    ("disable-redirects", Takes::Nothing),
    ("no-tui", Takes::Nothing),
    ("no-color", Takes::Nothing),
    ("no-pre-lookup", Takes::Nothing),
    ("stats-success-breakdown", Takes::Nothing),
    ("latency-correction", Takes::Nothing),
    ("w", Takes::Nothing),
    ("wait-ongoing-requests-after-deadline", Takes::Nothing),
    ("fps", Takes::Value),
    ("u", Takes::Value),
    ("connect-timeout", Takes::Value),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Takes {
    Nothing,
    Value,
}
