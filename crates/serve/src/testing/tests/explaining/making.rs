//! Random configurations and requests, drawn from a few parts that often interact.

use std::fmt::Write;
use std::net::SocketAddr;

use onrush_config::plan::Scheme;
use onrush_engine::Address;
use onrush_engine::random::Random;
use xxhash_rust::xxh3::xxh3_64;

/// Draws random parts.
pub(super) struct Maker {
    random: Random,
    servers: Vec<SocketAddr>,
    files: String,
}

const HOSTS: [&str; 5] = [
    "a.example",
    "b.example",
    "*.example",
    "*.b.example",
    "c.test",
];
const PATHS: [&str; 10] = [
    "/",
    "/api/",
    "/api",
    "=/api/users",
    "=/",
    "~^/api/[0-9]+$",
    "~\\\\.css$",
    "/static/",
    "/api/v2/",
    "/static/a%20b",
];
const LISTENERS: [&str; 3] = ["127.0.0.1:1", "second", "third"];
const NETWORKS: [&str; 5] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "192.0.2.0/24",
    "2001:db8::/32",
    "0.0.0.0/0",
];
const BALANCES: [&str; 9] = [
    "balance = \"round_robin\"",
    "balance = \"random\"",
    "balance = \"first\"",
    "balance = \"peak_ewma\"",
    "balance = \"least_connections\"",
    "balance = \"hash\"\nhash = \"address\"",
    "balance = \"hash\"\nhash = \"path\"",
    "balance = \"hash\"\nhash = \"header:X-A\"",
    "balance = \"hash\"\nhash = \"cookie:user\"",
];
/// Hash of the password `open sesame`, cheap to verify.
const HASH: &str = "$5$rounds=1000$0123456789abcdef$hMqyugAVjDQo776SPDVVKvzB/HICJXIdagCAitBHeU8";

impl Maker {
    pub(super) fn new(seed: u64, servers: Vec<SocketAddr>, files: String) -> Self {
        let random = Random::new(seed);
        Self {
            random,
            servers,
            files,
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    /// True with a probability of `percent`.
    fn happens(&self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn one_of<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// One quoted string, or a list of several.
    fn some_of(&self, all: &[&str]) -> String {
        let count = 1 + self.below(2);
        let texts: Vec<_> = (0..count)
            .map(|_| format!("\"{}\"", self.one_of(all)))
            .collect();
        match &*texts {
            [one] => one.clone(),
            _ => format!("[{}]", texts.join(", ")),
        }
    }

    /// A configuration with all [`LISTENERS`], which expect the PROXY protocol.
    pub(super) fn configuration(&self) -> String {
        let mut text = String::new();
        if self.happens(30) {
            text += "request_target_max = 64\n";
        }
        text += "[[listen]]\naddress = \"127.0.0.1:1\"\nproxy_protocol = true\n";
        text += "[[listen]]\naddress = \"127.0.0.1:2\"\nname = \"second\"\nproxy_protocol = true\n";
        text += "[[listen]]\naddress = \"127.0.0.1:3\"\nname = \"third\"\nproxy_protocol = true\n";
        let send = self.one_of(&["x-forwarded", "forwarded", "both", "none"]);
        let trust = match self.happens(50) {
            true => format!("trust = [\"{}\"]\n", self.one_of(&NETWORKS)),
            false => String::new(),
        };
        let _ = write!(text, "[forwarded]\nsend = \"{send}\"\n{trust}");
        let groups = 1 + self.below(3);
        for number in 0..groups {
            self.group(number, &mut text);
        }
        for number in 0..1 + self.below(14) {
            self.route(number, groups, &mut text);
        }
        text
    }

    fn group(&self, number: usize, text: &mut String) {
        let count = 1 + self.below(self.servers.len());
        let first = self.below(self.servers.len());
        let servers = (0..count).map(|at| {
            let address = self.servers[(first + at) % self.servers.len()];
            // At least one server is not a backup.
            let backup = at > 0 && self.happens(20);
            format!("{{ address = \"{address}\", backup = {backup} }}")
        });
        let servers: Vec<String> = servers.collect();
        let balance = self.one_of(&BALANCES);
        let _ = write!(
            text,
            "[upstream.g{number}]\nservers = [{}]\n{balance}\n",
            servers.join(", ")
        );
        if self.happens(30) {
            text.push_str("sticky = \"server\"\n");
        }
    }

    /// Conditions, as one table or one per line, according to `separator`.
    fn conditions(&self, percent: u64, separator: &str) -> String {
        let mut all = Vec::new();
        let mut may = |condition: &dyn Fn() -> String| {
            if self.happens(percent) {
                all.push(condition());
            }
        };
        may(&|| format!("host = {}", self.some_of(&HOSTS)));
        may(&|| format!("path = \"{}\"", self.one_of(&PATHS)));
        may(&|| format!("path = \"{}\"", self.one_of(&PATHS)));
        may(&|| format!("method = {}", self.some_of(&["GET", "POST", "OPTIONS"])));
        let values = ["1", "*", "!", "~^[12]$"];
        may(&|| format!("headers = {{ X-A = \"{}\" }}", self.one_of(&values)));
        may(&|| format!("query = {{ q = \"{}\" }}", self.one_of(&values)));
        may(&|| format!("from = {}", self.some_of(&NETWORKS)));
        may(&|| format!("scheme = \"{}\"", self.one_of(&["http", "https"])));
        may(&|| format!("listener = {}", self.some_of(&LISTENERS)));
        // Keys must be unique within a table.
        let mut keys: Vec<String> = Vec::new();
        all.retain(|condition| {
            let key = condition.split(' ').next().unwrap_or("").to_owned();
            let is_new = !keys.contains(&key);
            keys.push(key);
            is_new
        });
        all.join(separator)
    }

    fn route(&self, number: usize, groups: usize, text: &mut String) {
        let conditions = self.conditions(18, "\n");
        let _ = write!(
            text,
            "[[route]]\n{conditions}\nresponse_headers = {{ set = {{ X-Route = \"{number}\" }}, on = \"always\" }}\n"
        );
        let not = match self.happens(20) {
            true => self.conditions(25, ", "),
            false => String::new(),
        };
        if !not.is_empty() {
            let _ = writeln!(text, "not = {{ {not} }}");
        }
        self.access(text);
        if !conditions.contains("method") && self.happens(10) {
            text.push_str("cors = { origins = [\"https://app.example\"], methods = [\"GET\"] }\n");
        }
        match self.below(10) {
            0 | 1 => {
                let status = self.one_of(&[200, 204, 404, 503]);
                let _ = writeln!(text, "respond = {{ status = {status} }}");
            }
            2 | 3 => self.redirect(text),
            4 => text.push_str("synthetic = true\n"),
            5 => {
                let _ = writeln!(text, "files = {{ root = \"{}\" }}", self.files);
            }
            _ => self.forward(&conditions, groups, text),
        }
    }

    fn access(&self, text: &mut String) {
        for key in ["allow", "deny"] {
            if self.happens(8) {
                let _ = writeln!(text, "{key} = {}", self.some_of(&NETWORKS));
            }
        }
        if self.happens(5) {
            text.push_str("rate_limit = \"1000000/s\"\n");
        }
        if self.happens(8) {
            let _ = writeln!(
                text,
                "basic_auth = {{ realm = \"r\", users = {{ staff = \"{HASH}\" }} }}"
            );
        }
        if self.happens(20) {
            text.push_str("request_body_max = 4\n");
        }
    }

    fn redirect(&self, text: &mut String) {
        let to = self.one_of(&[
            "https://{host.name}{uri}",
            "/elsewhere{path.rest}?{query}",
            "https://{header:X-A}.example/",
            "{scheme}://new.example/{client.address}",
        ]);
        let status = self.one_of(&[301, 302, 308]);
        let _ = writeln!(text, "redirect = {{ to = \"{to}\", status = {status} }}");
    }

    fn forward(&self, conditions: &str, groups: usize, text: &mut String) {
        let group = self.below(groups);
        let _ = match self.below(4) {
            0 => {
                let other = (group + 1) % groups;
                let other = match other == group {
                    true => String::new(),
                    false => format!(", {{ to = \"g{other}\", weight = 2 }}"),
                };
                writeln!(
                    text,
                    "forward = [{{ to = \"g{group}\", weight = 1 }}{other}]"
                )
            }
            1 => writeln!(text, "forward = \"http://{}\"", self.one_of(&self.servers)),
            _ => writeln!(text, "forward = \"g{group}\""),
        };
        if self.happens(40) {
            let host = match self.happens(30) {
                true => ", Host = \"{header:X-A}\"",
                false => "",
            };
            let _ = writeln!(
                text,
                "request_headers = {{ set = {{ X-About = \"{{client.address}} {{scheme}} {{host.name}} {{upstream}}\"{host} }}, remove = [\"X-B\"] }}"
            );
        }
        let is_plain = conditions.contains("path = \"/") || conditions.contains("path = \"=");
        match self.below(4) {
            0 if is_plain => text.push_str("strip_prefix = true\n"),
            1 if is_plain => text.push_str("replace_prefix = \"/new\"\n"),
            2 => {
                text.push_str("rewrite = { match = \"^/api/([^/]+)\", to = \"/v3/$1?part=$1\" }\n")
            }
            _ => {}
        }
    }

    /// Listener index, client address and scheme.
    pub(super) fn coming(&self) -> (usize, SocketAddr, Scheme) {
        let address = self.one_of(&[
            "10.1.2.3",
            "10.2.0.1",
            "192.0.2.7",
            "2001:db8::7",
            "203.0.113.9",
        ]);
        let address: std::net::IpAddr = address.parse().expect("an address");
        let scheme = match self.happens(40) {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let port = 1024 + self.below(60_000) as u16;
        (self.below(LISTENERS.len()), (address, port).into(), scheme)
    }

    pub(super) fn request(&self) -> Vec<u8> {
        let method = self.one_of(&[
            "GET", "GET", "GET", "POST", "PUT", "OPTIONS", "HEAD", "DELETE",
        ]);
        let path = self.one_of(&[
            "/",
            "/api",
            "/api/",
            "/api/users",
            "/api/7",
            "/api/v2/x",
            "//api//7",
            "/static/style.css",
            "/static/a%20b/c",
            "/static/../api/users",
            "/a.txt",
            "/x/%2e%2e/api/",
            "/%61pi/7",
            "/nowhere",
        ]);
        let path = match self.below(60) {
            0 => "/%zz",
            1 => "/../up",
            2 => "*",
            3 => "/long/long/long/long/long/long/long/long/long/long/long/long/long/long/",
            4 => "http://b.example/api/users",
            _ => path,
        };
        let query = self.one_of(&["", "", "?q=1", "?q=3&x", "?q=2&q=4", "?%71=1"]);
        let version = self.one_of(&["1.1", "1.1", "1.1", "1.1", "1.0"]);
        let version = if self.happens(1) { "2.0" } else { version };
        let mut text = match self.happens(2) {
            true => "CONNECT a.example:80 HTTP/1.1\r\n".to_owned(),
            false => format!("{method} {path}{query} HTTP/{version}\r\n"),
        };
        let host = self.one_of(&[
            "a.example",
            "A.EXAMPLE:8080",
            "b.example",
            "x.b.example",
            "c.test.",
            "other",
            "[::1]:80",
        ]);
        let host = match self.below(60) {
            0 => "",
            1 => "a b",
            _ => host,
        };
        let _ = write!(text, "Host: {host}\r\n");
        self.fields(&mut text);
        let body = match self.below(6) {
            0 => "12345",
            1 => "1234",
            _ => "",
        };
        if self.happens(30) || !body.is_empty() {
            let _ = write!(text, "Content-Length: {}\r\n", body.len());
        }
        (text + "\r\n" + body).into_bytes()
    }

    fn fields(&self, text: &mut String) {
        let mut may = |percent, lines: &[&str]| {
            if self.happens(percent) {
                let line: &&str = self.one_of(lines);
                text.push_str(line);
                text.push_str("\r\n");
            }
        };
        may(40, &["X-A: 1", "x-a: 2", "X-A: three", "X-A: 0\r\nX-A: 1"]);
        may(
            20,
            &[
                "X-B: b",
                "X_About: me",
                "Connection: X-A\r\nX-C: c",
                "TE: trailers\r\nConnection: TE",
            ],
        );
        may(
            20,
            &[
                "X-Forwarded-For: 10.9.9.9",
                "X-Forwarded-For: 192.0.2.1, 10.1.1.1",
                "Forwarded: for=10.8.8.8;proto=https",
            ],
        );
        may(
            15,
            &["X-Forwarded-Proto: https", "X-Forwarded-Host: told.example"],
        );
        // Valid credentials, a wrong password, an unknown user, and malformed credentials.
        may(
            30,
            &[
                "Authorization: Basic c3RhZmY6b3BlbiBzZXNhbWU=",
                "Authorization: Basic c3RhZmY6b3BlbiBzZXNhbWU=",
                "Authorization: Basic c3RhZmY6d3Jvbmc=",
                "Authorization: Basic bm9ib2R5Om9wZW4gc2VzYW1l",
                "Authorization: Bearer x",
            ],
        );
        may(
            15,
            &[
                "Origin: https://app.example\r\nAccess-Control-Request-Method: GET",
                "Origin: https://evil.example",
            ],
        );
        may(
            20,
            &[
                "Cookie: user=7",
                "Cookie: user=8; x=y",
                "Cookie: server=0123456789abcdef",
            ],
        );
        let stuck = Address::Tcp(*self.one_of(&self.servers)).to_string();
        let stuck = format!("Cookie: server={:016x}", xxh3_64(stuck.as_bytes()));
        may(20, &[&stuck]);
        let loops = "Via: 1.1 onrush\r\n".repeat(9);
        may(
            2,
            &[
                "Bad Name: x",
                "Content-Length: x",
                "Transfer-Encoding: gzip",
                "Expect: more",
                loops.trim_end(),
            ],
        );
    }
}
