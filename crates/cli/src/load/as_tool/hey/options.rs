//! Options of hey and oha.

use crate::load::as_tool::option::Action::{Flag, Ignored, IgnoredValue, Refused, Value};
use crate::load::as_tool::option::{Grammar, Row, Syntax, any, table};

const HELP_HEY: &str = "\
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

const HELP_OHA: &str = "\
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

/// No limit: the longest duration that `onrush load` accepts.
pub(super) const NO_END: &str = "8760h";

pub(super) const HEY: Syntax = Syntax {
    tool: "hey that is known here",
    grammar: Grammar::Go,
    help: HELP_HEY,
    tables: [OPTIONS, OF_HEY],
};

pub(super) const OHA: Syntax = Syntax {
    tool: "oha that is known here",
    grammar: Grammar::Clap,
    help: HELP_OHA,
    tables: [OPTIONS, OF_OHA],
};

const OF_HEY: &[Row] = table! {
    "-t" => Value(seconds),
    "--h2" => Flag(""),
};

const OF_OHA: &[Row] = table! {
    "-t -p" => Value(any),
    "--http2" => Flag("2"),
    "--http-version" => Value(version),
};

/// Options whose stored values are native flags.
pub(super) const OUR_FLAGS: &str =
    "-a --disable-keepalive --unix-socket --cacert --cert --key --insecure";

const OPTIONS: &[Row] = table! {
    "-h|--help -v --disable-compression" => Flag(""),
    "-n -c -z -q --burst-rate --burst-delay -m|--method --cpus|--worker-threads" => Value(any),
    "-H" => Value(header),
    "-A" => Value(|_, types| Ok(format!("Accept: {}", plain(types)))),
    "-T" => Value(|_, name| Ok(format!("Content-Type: {}", plain(name)))),
    "--host" => Value(|_, host| Ok(format!("Host: {}", plain(host)))),
    "-d" => Value(body),
    "-D" => Value(|_, file| Ok(format!("--body-file={file}"))),
    "-a" => Value(|_, user| Ok(format!("--user={user}"))),
    "--disable-keepalive" => Flag("--requests=1"),
    "--unix-socket" => Value(|_, path| Ok(format!("--connect-to=unix:{path}"))),
    "--cacert --cert --key" => Value(|name, file| Ok(format!("--{}={file}", name.trim_start_matches('-')))),
    "--insecure" => Flag("--insecure"),
    "--disable-redirects --no-tui --no-color --no-pre-lookup" => Ignored(NO_EFFECT),
    "--stats-success-breakdown --latency-correction" => Ignored(NO_EFFECT),
    "-w --wait-ongoing-requests-after-deadline" => Ignored(NO_EFFECT),
    "--fps -u --connect-timeout" => IgnoredValue(any, NO_EFFECT),
    "-x" => Refused(": there is no way through an HTTP proxy"),
    "-o --output --output-format" => Refused(": use onrush load itself, which writes --json, --csv and --html"),
    "-r --redirect" => Refused(": redirects are followed by journeys: onrush load --journeys"),
    "--rand-regex-url" => Refused(": {{random:1-1000}} and {{data:COLUMN}} in a URL of onrush load make it another each time"),
    "--urls-from-file" => Refused(": name several URLs to onrush load, or a --requests-file"),
    "-Z" => Refused(": use --data of onrush load with {{data:COLUMN}} in the --body"),
    "-F --form" => Refused(": write the form to a file and send it by -D, with its Content-Type by -T"),
    "--db-url" => Refused(": use onrush load itself, which writes --json"),
    "--debug" => Refused(": use curl -v for a single request"),
    "--connect-to" => Refused(": use --connect-to HOST:PORT of onrush load"),
    "--ipv4 --ipv6" => Refused(": name the address to --connect-to of onrush load"),
    "--aws-sigv4" => Refused(": requests are not signed"),
};

const NO_EFFECT: &str = " has no effect here";

/// Escapes text so that `onrush load` finds no variables in it.
pub(super) fn plain(text: &str) -> String {
    text.replace("{{", "{{}}")
}

fn header(name: &str, text: &str) -> Result<String, String> {
    let (field, value) = text.split_once(':').ok_or_else(|| {
        format!("{name} {text:?} is not a header: expected one such as 'Accept: text/html'")
    })?;
    Ok(format!("{}: {}", field.trim(), plain(value.trim())))
}

fn body(_: &str, text: &str) -> Result<String, String> {
    // A leading @ is doubled: `onrush load` would read the body from a file.
    let at = if text.starts_with('@') { "@" } else { "" };
    Ok(format!("--body={at}{}", plain(text)))
}

fn seconds(name: &str, text: &str) -> Result<String, String> {
    match text.parse::<u64>() {
        Ok(0) => Ok(NO_END.to_owned()),
        Ok(seconds) => Ok(format!("{seconds}s")),
        Err(_) => Err(format!(
            "{name} wants whole seconds such as 20, not {text:?}"
        )),
    }
}

fn version(name: &str, text: &str) -> Result<String, String> {
    match text {
        "2" | "1.1" => Ok(text.to_owned()),
        _ => Err(format!("{name} {text}: expected 1.1 or 2")),
    }
}
