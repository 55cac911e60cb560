//! The command line of mcblaster.

use onrush_load::limits::RATIO_MAX;

use super::line::{Line, Printer, Run};
use super::option::Action::{Flag, Ignored, IgnoredValue, Value};
use super::option::{Grammar, ParsedOptions, Row, Syntax, table};

const HELP: &str = "\
onrush load --as mcblaster [option]... HOST

  -p PORT  TCP port of the server
  -u PORT  UDP port of the server, for gets; not with -w
  -r RATE  gets per second, evenly spaced
  -w RATE  sets per second; gets and sets are chosen at random, in the ratio of their rates
  -c N     connections per thread (1); over UDP a thread has one socket
  -t N     threads (one per CPU)
  -d N     duration of the run in seconds (unlimited)
  -k N     keys (1); with -r all are stored before the run
  -z N     bytes per value (100)
  -q       no messages about options that have no effect
  -n, -s N, -x N
           have no effect
  -v       print the command line of onrush load to standard error
";

/// mcblaster runs until it is stopped: the longest duration that `onrush load` accepts.
const NO_END: &str = "8760h";

/// Outstanding gets of a thread over UDP. mcblaster does not wait for responses; this many are never outstanding at a
/// thread's rate unless responses are lost.
const ON_THE_WAY: u64 = 1024;

/// Limits of mcblaster.
const KEYS_MAX: u64 = 10_000_000;
const VALUE_MAX: u64 = 64_000;

const SYNTAX: Syntax = Syntax {
    tool: "mcblaster",
    grammar: Grammar::Getopt,
    help: HELP,
    tables: [OPTIONS, &[]],
};

const OPTIONS: &[Row] = table! {
    "-h -q -v" => Flag(""),
    "-p -u" => Value(|name, text| number(name, 65_535, text)),
    "-r -w -d" => Value(number_32),
    "-c" => Value(|name, text| number(name, 1 << 20, text)),
    "-t" => Value(|name, text| number(name, 1024, text)),
    "-k" => Value(|name, text| number(name, KEYS_MAX, text)),
    "-z" => Value(|name, text| number(name, VALUE_MAX, text)),
    "-n" => Ignored(" has no effect: requests are always sent without delay"),
    "-s" => IgnoredValue(number_32, " has no effect: the kernel sizes the socket buffers"),
    "-x" => IgnoredValue(number_32, " has no effect: UDP responses arrive at the port that sent the request"),
};

/// Parses the command line.
pub(super) fn read(words: &[String]) -> Result<Line, String> {
    SYNTAX.line(words, run)
}

fn run(mut given: ParsedOptions) -> Result<Run, String> {
    let host = given.only_argument("host", "mcblaster accepts one host")?;
    let host = match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    let port = port_of_gets(&given)?;
    let [gets, sets] = ["-r", "-w"].map(|name| given.number(name).unwrap_or(0));
    if gets + sets == 0 {
        return Err("no rate: pass -r GETS_PER_SECOND or -w SETS_PER_SECOND".to_owned());
    }
    let (part_of_gets, part_of_sets) = reduced(gets, sets);
    let cpus = std::thread::available_parallelism();
    let cpus = cpus.map_or(1, |cpus| cpus.get() as u64);
    let threads = given.number("-t").unwrap_or(cpus);
    let connections = match given.has("-u") {
        true => threads,
        false => given.number("-c").unwrap_or(1) * threads,
    };
    let keys = given.number("-k").unwrap_or(1);
    let mut native = vec![
        format!("--rate={}", gets + sets),
        format!("--ratio={part_of_gets}:{part_of_sets}"),
        format!("--connections={connections}"),
        format!("--threads={threads}"),
        match given.last("-d") {
            Some(seconds) => format!("--duration={seconds}s"),
            None => format!("--duration={NO_END}"),
        },
        format!("--keys={keys}"),
        // Length of mcblaster's longest key: `k-` and a number.
        format!("--key-size={}", 2 + (keys - 1).to_string().len()),
        format!("--value-size={}", given.last("-z").unwrap_or("100")),
    ];
    if gets > 0 {
        native.push("--populate".to_owned());
    }
    if given.has("-u") {
        native.push("--udp".to_owned());
        native.push(format!("--pipeline={ON_THE_WAY}"));
    }
    native.push(format!("memcached://{host}:{port}"));
    if given.has("-q") {
        given.notes.clear();
    }
    Ok(given.run(native, Printer::Mcblaster))
}

/// Port of all requests.
fn port_of_gets(given: &ParsedOptions) -> Result<&str, String> {
    match (given.last("-u"), given.last("-w")) {
        (Some(_), Some(sets)) => Err(format!(
            "-u and -w {sets}: gets go over UDP and sets over TCP, but a run uses only one of them: start one run with -u and -r, and one with -p and -w"
        )),
        (Some(port), None) => Ok(port),
        (None, _) => {
            let port = given.last("-p");
            Ok(port.ok_or("no port: pass -p PORT, or -u for gets over UDP")?)
        }
    }
}

fn number_32(name: &str, text: &str) -> Result<String, String> {
    number(name, u64::from(u32::MAX), text)
}

/// A whole number of at least 1, as for all options of mcblaster.
fn number(name: &str, most: u64, text: &str) -> Result<String, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &u64| (1..=most).contains(number));
    let number = number.map(|number| number.to_string());
    number.ok_or_else(|| format!("{name} {text}: expected a whole number from 1 to {most}"))
}

/// The ratio of two rates, with numbers that `--ratio` accepts.
fn reduced(gets: u64, sets: u64) -> (u64, u64) {
    let (mut divisor, mut rest) = (gets, sets);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let (gets, sets) = (gets / divisor, sets / divisor);
    let scale = gets.max(sets).div_ceil(u64::from(RATIO_MAX)).max(1);
    // A rate above 0 does not become 0.
    let part = |rate: u64| (rate / scale).max(rate.min(1));
    (part(gets), part(sets))
}

#[cfg(test)]
mod tests {
    use super::super::tests::native;
    use super::*;

    #[test]
    fn mcblaster_line_is_translated() {
        for (line, expected) in [
            (
                "-p 11211 -t 1 -c 20 -z 100 -d 10 -r 100000 -k 2000 host",
                "--rate=100000 --ratio=1:0 --connections=20 --threads=1 --duration=10s --keys=2000 --key-size=6 --value-size=100 --populate memcached://host:11211",
            ),
            (
                "-p 7425 -t 8 -z 50 -k 2000000 -d 30 -w 1000 -c 10 -r 1 10.0.0.1",
                "--rate=1001 --ratio=1:1000 --connections=80 --threads=8 --duration=30s --keys=2000000 --key-size=9 --value-size=50 --populate memcached://10.0.0.1:7425",
            ),
            (
                "-u 11212 -p 11211 -r 200000 -t 4 -c 50 -d 5 host",
                "--rate=200000 --ratio=1:0 --connections=4 --threads=4 --duration=5s --keys=1 --key-size=3 --value-size=100 --populate --udp --pipeline=1024 memcached://host:11212",
            ),
            (
                "-t2 -p1 -w5 ::1",
                "--rate=5 --ratio=0:1 --connections=2 --threads=2 --duration=8760h --keys=1 --key-size=3 --value-size=100 memcached://[::1]:1",
            ),
        ] {
            let expected = expected.replace("memcached://[::1]:1", "'memcached://[::1]:1'");
            assert_eq!(native(read, line).as_deref(), Ok(&*expected), "{line}");
        }
    }

    #[test]
    fn large_ratios_are_reduced() {
        assert_eq!(reduced(300_000, 100_000), (3, 1));
        assert_eq!(reduced(4_000_000_001, 1), (999_750, 1));
        assert_eq!(reduced(5, 0), (1, 0));
        assert_eq!(reduced(0, 5), (0, 1));
    }

    #[test]
    fn invalid_lines_are_refused_with_reason() {
        for (line, part) in [
            ("-r 1 host", "no port: pass -p PORT"),
            ("-p 1 host", "no rate: pass -r"),
            ("-p 1 -r 1", "no host given"),
            ("-p 1 -r 1 a b", "mcblaster accepts one host"),
            (
                "-p 0 -r 1 a",
                "-p 0: expected a whole number from 1 to 65535",
            ),
            ("-p 1 -r x a", "-r x: expected a whole number"),
            ("-u 11211 -r 1 -w 2 a", "sets over TCP"),
            ("-u x -r 1 a", "-u x: expected a whole number"),
            ("-p 1 -z 64001 -w 1 a", "from 1 to 64000"),
            ("-y a", "-y is not an option of mcblaster"),
            ("--gets 5 a", "--gets is not an option of mcblaster"),
        ] {
            let error = native(read, line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
