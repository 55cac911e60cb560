//! Options of hey and oha.

use crate::load::as_tool::option::Action::{Flag, Ignored, IgnoredValue, Refused, Value};
use crate::load::as_tool::option::{Grammar, Row, Syntax, any, table};

const HELP_HEY: &str = "\
onrush load --as hey [option]... URL

  -n COUNT               total requests (200)
  -c COUNT               connections (50)
  -z TIME                duration of the run, instead of -n
  -q RATE                requests per second per connection (unlimited)
  -m METHOD              method (GET)
  -H 'Name: value'       header field to send; repeatable
  -A TYPES, -T TYPE      Accept, Content-Type (text/html)
  -d TEXT, -D FILE       body
  -a USER:PASSWORD       basic authentication
  -t SECONDS             timeout without received data while a response is outstanding; 0: none (20)
  -host NAME             Host
  -cpus COUNT            threads (1)
  -h2                    HTTP/2 over https://, with all requests on one connection
  -disable-keepalive     one connection per request
  -disable-compression   send no Accept-Encoding
  -disable-redirects     has no effect: redirects are never followed
  -v                     print the command line of onrush load to standard error
";

const HELP_OHA: &str = "\
onrush load --as oha [option]... URL

  -n COUNT               total requests (200)
  -c COUNT               connections (50)
  -z TIME                duration of the run, instead of -n
  -q RATE                total requests per second (unlimited); latency counts from the intended start
  --burst-rate COUNT --burst-delay TIME
                         bursts of this many requests, one after each delay
  -m METHOD              method (GET)
  -H 'Name: value'       header field to send; repeatable
  -A TYPES, -T TYPE      Accept, Content-Type
  -d TEXT, -D FILE       body
  -a USER:PASSWORD       basic authentication
  -t TIME                timeout without received data while a response is outstanding (none)
  --host NAME            Host
  --worker-threads COUNT threads (1)
  --http2, --http-version 2, -p COUNT
                         HTTP/2, with this many concurrent requests per connection (1)
  --disable-keepalive    one connection per request
  --disable-compression  send no Accept-Encoding
  --unix-socket PATH     connect to this Unix socket
  --cacert, --cert, --key FILE, --insecure
                         as for onrush load
  -w, --no-tui, --no-color, --fps, -u, --stats-success-breakdown, --latency-correction, --no-pre-lookup,
  --connect-timeout      have no effect
  -v                     print the command line of onrush load to standard error
";

/// No limit: the longest duration that `onrush load` accepts.
pub(super) const NO_END: &str = "8760h";

pub(super) const HEY: Syntax = Syntax {
    tool: "hey that is supported here",
    grammar: Grammar::Go,
    help: HELP_HEY,
    tables: [OPTIONS, OF_HEY],
};

pub(super) const OHA: Syntax = Syntax {
    tool: "oha that is supported here",
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
    "-x" => Refused(": HTTP proxies are not supported"),
    "-o --output --output-format" => Refused(": use onrush load itself, which writes --json, --csv and --html"),
    "-r --redirect" => Refused(": to follow redirects use onrush load --journeys"),
    "--rand-regex-url" => Refused(": use {{random:1-1000}} or {{data:COLUMN}} in a URL of onrush load"),
    "--urls-from-file" => Refused(": pass several URLs to onrush load, or use --requests-file"),
    "-Z" => Refused(": use onrush load --data with {{data:COLUMN}} in --body"),
    "-F --form" => Refused(": write the form to a file; send it with -D and its Content-Type with -T"),
    "--db-url" => Refused(": use onrush load itself, which writes --json"),
    "--debug" => Refused(": use curl -v for a single request"),
    "--connect-to" => Refused(": use onrush load --connect-to HOST:PORT"),
    "--ipv4 --ipv6" => Refused(": use onrush load --connect-to with the address"),
    "--aws-sigv4" => Refused(": signing requests is not supported"),
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
            "{name} {text:?}: expected whole seconds such as 20"
        )),
    }
}

fn version(name: &str, text: &str) -> Result<String, String> {
    match text {
        "2" | "1.1" => Ok(text.to_owned()),
        _ => Err(format!("{name} {text}: expected 1.1 or 2")),
    }
}
