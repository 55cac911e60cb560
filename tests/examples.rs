//! Runs each configuration in `examples/` and checks what it promises. Ports, directories and other machines are
//! replaced by the test's own.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::application::{Application, exchange_over_websocket};
use crate::peer::curl;
use crate::program::{Client, Serve, run_onrush};

/// Examples with a test below.
const TESTED_EXAMPLES: [&str; 10] = [
    "api-gateway",
    "application",
    "behind-balancer",
    "canary",
    "lab",
    "many-sites",
    "rate-limits",
    "static-site",
    "tls",
    "websocket",
];

#[test]
fn every_example_has_a_test() {
    let mut written: Vec<_> = fs::read_dir(examples())
        .expect("it is in the repository")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .map(|path| path.file_stem().expect("a name").to_owned())
        .collect();
    written.sort();
    assert_eq!(written, TESTED_EXAMPLES);
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// An example that is being adapted to this machine.
struct Example {
    text: String,
    directory: TempDir,
}

struct Running {
    serve: Serve,
    /// Addresses of the listeners, in the order of the file.
    addresses: Vec<String>,
    directory: TempDir,
}

impl Example {
    fn of(name: &str) -> Self {
        assert!(TESTED_EXAMPLES.contains(&name));
        let path = examples().join(name).with_extension("toml");
        Self {
            text: fs::read_to_string(path).expect("it is in the repository"),
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    fn with(mut self, written: &str, real: &str) -> Self {
        assert!(self.text.contains(written), "{written} is in it");
        self.text = self.text.replace(written, real);
        self
    }

    fn on_free_port(self, written: &str) -> Self {
        self.with(written, "127.0.0.1:0")
    }

    /// Replaces `written` by a temporary directory with these files.
    fn with_files(self, written: &str, files: &[(&str, &[u8])]) -> Self {
        let root = self.directory.path().join(written.trim_matches('/'));
        fs::create_dir_all(&root).expect("it is ours");
        for (name, content) in files {
            fs::write(root.join(name), content).expect("it is ours");
        }
        let root = root.display().to_string();
        self.with(written, &root)
    }

    /// Writes an included file, with `written` replaced by `real`.
    fn with_included(self, name: &str, written: &str, real: &str) -> Self {
        let text = fs::read_to_string(examples().join(name)).expect("it is in the repository");
        assert!(text.contains(written), "{written} is in {name}");
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("it is ours");
        fs::write(path, text.replace(written, real)).expect("it is ours");
        self
    }

    fn start(self) -> Running {
        let path = self.directory.path().join("onrush.toml");
        fs::write(&path, &self.text).expect("it is ours");
        let path = path.display().to_string();
        let checked = run_onrush(&["check", &path]);
        assert_eq!(
            (checked.code, checked.err.as_str()),
            (Some(0), ""),
            "{}",
            self.text
        );
        let serve = Serve::start(&["--config", &path]);
        let listening = serve
            .start_up_lines
            .lines()
            .find_map(|line| line.strip_prefix("  listening on "));
        let addresses = listening.expect("it says where").split(", ");
        let addresses = addresses.map(|address| address.trim_end_matches(" with TLS").to_owned());
        Running {
            addresses: addresses.collect(),
            serve,
            directory: self.directory,
        }
    }
}

impl Running {
    /// Response of the first listener to a request without a body.
    fn ask(&self, line: &str, fields: &[&str]) -> String {
        self.ask_at(0, line, fields)
    }

    fn ask_at(&self, address: usize, line: &str, fields: &[&str]) -> String {
        let names_host = fields.iter().any(|field| field.starts_with("Host: "));
        let host = if names_host { "" } else { "Host: h\r\n" };
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let request = format!("{line} HTTP/1.1\r\n{host}{fields}Connection: close\r\n\r\n");
        self.client(address).exchange(request.as_bytes())
    }

    fn client(&self, address: usize) -> Client<std::net::TcpStream> {
        let stream = std::net::TcpStream::connect(&self.addresses[address]).expect("it listens");
        Client(stream)
    }

    /// Sends a request and checks the status and, ignoring case, that the response contains all of `parts`.
    fn shows(&self, line: &str, fields: &[&str], status: u16, parts: &[&str]) {
        has(&self.ask(line, fields), status, parts);
    }
}

/// Checks the status of `response` and, ignoring case, that it contains all of `parts`.
fn has(response: &str, status: u16, parts: &[&str]) {
    let lowercase = response.to_lowercase();
    assert!(
        response.starts_with(&format!("HTTP/1.1 {status} ")),
        "{response}"
    );
    for part in parts {
        assert!(
            lowercase.contains(&part.to_lowercase()),
            "{part:?} in {response}"
        );
    }
}

#[test]
fn static_site_example_works() {
    let css = "p { color: black }\n".repeat(100);
    let assets: [(&str, &[u8]); 2] = [("a.css", css.as_bytes()), ("a.css.br", b"as Brotli")];
    let site = Example::of("static-site")
        .on_free_port("0.0.0.0:8080")
        .on_free_port("[::]:8080")
        .with_files("/srv/assets", &assets)
        .with_files("/srv/www", &[("index.htm", b"welcome")])
        .start();
    assert_eq!(site.addresses.len(), 2);
    site.shows("GET /health", &[], 200, &["\r\n\r\nok\n"]);
    site.shows("GET /", &["Host: www.example.com"], 200, &["welcome"]);
    let location = "\r\nLocation: http://www.example.com/a?b\r\n";
    site.shows("GET /a?b", &["Host: example.com"], 308, &[location]);
    site.shows("GET /", &["Host: example.net"], 404, &["no such site"]);
    let host = "Host: STATIC.example.com:8080";
    let kept = "\r\nCache-Control: max-age=3600\r\n";
    site.shows("GET /assets/a.css", &[host], 200, &[&css, kept]);
    let not_kept = "\r\nCache-Control: no-store\r\n";
    site.shows("GET /assets/b.css", &[host], 404, &[not_kept]);
    for (coding, part) in [("br", "as Brotli"), ("gzip", "\r\n")] {
        let fields = [host, &format!("Accept-Encoding: {coding}")];
        let encoding = format!("\r\nContent-Encoding: {coding}\r\n");
        site.shows("GET /assets/a.css", &fields, 200, &[&encoding, part, kept]);
    }
}

#[test]
fn many_sites_example_works() {
    let blog = Application::start("blog");
    let site = Example::of("many-sites")
        .on_free_port("0.0.0.0:8080")
        .with_included(
            "many-sites/blog.toml",
            "\"10.0.0.1:8000\", \"10.0.0.2:8000\"",
            &format!("\"{}\"", blog.address),
        )
        .with_included("many-sites/shop.toml", "example.com", "example.net");
    let path = examples().join("many-sites.toml");
    let checked = run_onrush(&["check", &path.display().to_string()]);
    assert_eq!(checked.code, Some(0), "as it stands there: {checked:?}");
    let pages = site.directory.path().join("many-sites/shop");
    fs::create_dir(&pages).expect("it is ours");
    fs::write(pages.join("index.html"), "buy").expect("it is ours");
    let site = site.start();
    site.shows("GET /", &["Host: shop.example.net"], 200, &["\r\n\r\nbuy"]);
    site.shows("GET /", &["Host: example.org"], 404, &["no such site"]);
    let blog = "Host: blog.example.com";
    site.shows("GET /", &[blog], 200, &["\r\n\r\nblog\nGET / "]);
}

#[test]
fn application_example_works() {
    let [app, backup, reports] = ["app", "backup", "reports"].map(Application::start);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let dead = nobody.local_addr().expect("bound").to_string();
    drop(nobody);
    let socket = tempfile::tempdir().expect("a directory");
    let example = Example::of("application")
        .on_free_port("0.0.0.0:8080")
        .with(
            "/run/onrush.sock",
            &socket.path().join("socket").display().to_string(),
        )
        .with_files("/srv/app/static", &[("logo.svg", b"<svg/>")])
        .with("127.0.0.1:9000", &reports.address)
        .with("10.0.0.1:8000", &dead)
        .with("10.0.0.2:8000", &app.address)
        .with("10.0.0.3:8000", &backup.address)
        .start();
    // The first server of the group is dead; clients do not notice.
    for _ in 0..20 {
        example.shows("GET /", &[], 200, &["\r\n\r\napp\nGET / "]);
    }
    example.shows("GET /static/logo.svg", &[], 200, &["<svg/>"]);
    example.shows("GET /reports/1", &[], 200, &["\r\n\r\nreports\n"]);
    let mut neighbour = Client::connect(&socket.path().join("socket"));
    let response = neighbour.exchange(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    has(&response, 200, &["\r\n\r\napp\n"]);
}

#[test]
fn canary_example_works() {
    let [old, new] = ["old version", "new version"].map(Application::start);
    let other = Application::start("old version");
    let example = Example::of("canary")
        .on_free_port("0.0.0.0:8080")
        .with("10.0.0.1:8000", &old.address)
        .with("10.0.0.2:8000", &other.address)
        .with("10.0.0.9:8000", &new.address)
        .start();
    let of_new = ["\r\nX-Version: new\r\n", "\r\n\r\nnew version\n"];
    let of_old = ["\r\nX-Version: old\r\n", "\r\n\r\nold version\n"];
    for _ in 0..20 {
        example.shows("GET /", &["X-Canary: yes"], 200, &of_new);
        example.shows("GET /checkout/pay", &[], 200, &of_old);
    }
    // The probability that none of 600 requests reaches the new version is 0.95^600, about 4e-14.
    let responses: Vec<_> = (0..600).map(|_| example.ask("GET /", &[])).collect();
    let count = |part| {
        responses
            .iter()
            .filter(|response| response.contains(part))
            .count()
    };
    let (olds, news) = (
        count("\r\n\r\nold version\n"),
        count("\r\n\r\nnew version\n"),
    );
    assert_eq!(olds + news, responses.len());
    assert!(news > 0 && olds > news, "{news} of {}", responses.len());
}

#[test]
fn tls_example_works_with_several_names() {
    let application = Application::start("app");
    let made = ["example.com", "example.org"].map(|name| {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a name");
        (made.cert.pem(), made.signing_key.serialize_pem())
    });
    let [com, org] = &made;
    let files: [(&str, &[u8]); 4] = [
        ("example.com.pem", com.0.as_bytes()),
        ("example.com.key", com.1.as_bytes()),
        ("example.org.pem", org.0.as_bytes()),
        ("example.org.key", org.1.as_bytes()),
    ];
    let example = Example::of("tls")
        .on_free_port("0.0.0.0:443")
        .on_free_port("0.0.0.0:80")
        .with_files("/etc/onrush", &files)
        .with("10.0.0.1:8000", &application.address)
        .start();
    let port = example.addresses[0].rsplit(':').next().expect("a port");
    let certificates = example.directory.path().join("etc/onrush");
    let authority = |name: &str| format!("{}/{name}.pem", certificates.display());
    let ask = |name: &str, more: &[&str]| {
        let (ca, resolve) = (authority(name), format!("{name}:{port}:127.0.0.1"));
        let url = format!("https://{name}:{port}/");
        let words = [
            "-i",
            "--http1.1",
            "--cacert",
            &ca,
            "--resolve",
            &resolve,
            &url,
        ];
        curl(&[&words, more].concat()).out
    };
    let transport = "\r\nStrict-Transport-Security: max-age=31536000\r\n";
    has(
        &ask("example.com", &[]),
        200,
        &[transport, "\nX-Tls-Version: TLS", "\r\n\r\napp\n"],
    );
    has(&ask("example.org", &[]), 200, &["the other site"]);
    has(&ask("example.com", &["-H", "Host: example.net"]), 421, &[]);
    let location = "\r\nLocation: https://www.example.com/a?b=c\r\n";
    has(
        &example.ask_at(1, "GET /a?b=c", &["Host: www.example.com:80"]),
        308,
        &[location],
    );
}

#[test]
fn load_balancer_example_works() {
    let [one, two] = ["one", "two"].map(Application::start);
    let example = Example::of("behind-balancer")
        .on_free_port("0.0.0.0:8080")
        .on_free_port("0.0.0.0:8081")
        .with("10.0.0.0/24", "127.0.0.0/8")
        .with("10.0.1.1:8000", &one.address)
        .with("10.0.1.2:8000", &two.address)
        .start();
    let told = |client: &str| format!("X-Forwarded-For: {client}");
    let inside = example.ask_at(1, "GET /internal/a", &[&told("192.0.2.7")]);
    has(
        &inside,
        200,
        &[
            "\nX-Forwarded-For: 192.0.2.7, 127.0.0.1\r\n",
            "\nForwarded: for=127.0.0.1;",
        ],
    );
    has(
        &example.ask_at(1, "GET /internal/a", &[&told("198.51.100.7")]),
        403,
        &[],
    );
    // A client stays with its server.
    let server = |response: &str| {
        response
            .split("\r\n\r\n")
            .nth(1)
            .map(|body| body[..3].to_owned())
    };
    for _ in 0..10 {
        let again = example.ask_at(1, "GET /internal/b", &[&told("192.0.2.7")]);
        assert_eq!(server(&again), server(&inside));
    }
    let request = "GET /internal/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    for (client, status) in [("192.0.2.7", 200), ("198.51.100.7", 403)] {
        let told = format!("PROXY TCP4 {client} 127.0.0.1 5555 8080\r\n{request}");
        has(&example.client(0).exchange(told.as_bytes()), status, &[]);
    }
}

#[test]
fn websocket_example_works() {
    let [one, two, site] = ["chat one", "chat two", "site"].map(Application::start);
    let example = Example::of("websocket")
        .on_free_port("0.0.0.0:8080")
        .with("10.0.0.1:9000", &one.address)
        .with("10.0.0.2:9000", &two.address)
        .with("10.0.0.3:8000", &site.address)
        .start();
    exchange_over_websocket(&mut example.client(0), "/chat");
    example.shows("GET /", &[], 200, &["\r\n\r\nsite\n"]);
    // A returning client reaches the same server.
    let first = example.ask("GET /chat/history", &[]);
    let cookie = first.split("\r\nSet-Cookie: ").nth(1).expect("a cookie");
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("its value"));
    let name = if first.contains("\r\n\r\nchat one\n") {
        "one"
    } else {
        "two"
    };
    for _ in 0..10 {
        let body = format!("\r\n\r\nchat {name}\n");
        example.shows("GET /chat/history", &[&cookie], 200, &[&body]);
    }
    let totals = example.serve.stop();
    assert_eq!(totals.number_before(" tunnels"), 1, "{totals:?}");
}

#[test]
fn rate_limits_example_works() {
    let application = Application::start("app");
    let example = Example::of("rate-limits")
        .on_free_port("0.0.0.0:8080")
        .with("10.0.0.1:8000", &application.address)
        .start();
    for _ in 0..3 {
        example.shows(
            "POST /login",
            &["Content-Length: 0"],
            200,
            &["\r\n\r\napp\n"],
        );
    }
    let retry_after = "\r\nRetry-After: ";
    example.shows("POST /login", &["Content-Length: 0"], 429, &[retry_after]);
    // Only the combination of method and path is limited.
    example.shows("GET /login", &[], 200, &[]);
    example.shows("GET /search?q=a", &[], 200, &[]);
    // Each key has a limit of its own.
    let request = "GET /api/ HTTP/1.1\r\nHost: h\r\nX-Api-Key: one\r\n\r\n".repeat(1000);
    let responses = example.client(0).exchange(request.as_bytes());
    has(
        &responses,
        200,
        &["HTTP/1.1 429 Too Many Requests", retry_after],
    );
    example.shows("GET /api/", &["X-Api-Key: two"], 200, &[]);
}

#[test]
fn api_gateway_example_works() {
    let [users, orders] = ["users", "orders"].map(Application::start);
    let more_users = Application::start("users");
    let example = Example::of("api-gateway")
        .on_free_port("0.0.0.0:8080")
        .with("10.0.0.1:8000", &users.address)
        .with("10.0.0.2:8000", &more_users.address)
        .with("10.0.1.1:8000", &orders.address)
        .start();
    example.shows(
        "GET /users/7?x",
        &[],
        200,
        &["\r\n\r\nusers\nGET /7?x HTTP/1.1\r\n"],
    );
    let response = example.ask("GET /orders/1", &["X-Debug: 1"]);
    has(
        &response,
        200,
        &["\r\n\r\norders\nGET /v2/orders/1 HTTP/1.1\r\n"],
    );
    assert!(!response.contains("X-Debug"), "{response}");
    // The same ID for the client and for the service.
    let ids: Vec<_> = response
        .split("X-Request-Id: ")
        .skip(1)
        .map(|rest| &rest[..32])
        .collect();
    assert!(
        matches!(ids[..], [client, service] if client == service),
        "{response}"
    );
    // Loopback is not one of its networks.
    example.shows("POST /orders/1", &["Content-Length: 0"], 403, &[]);
    example.shows(
        "GET /",
        &[],
        302,
        &["\r\nLocation: https://docs.example.com/\r\n"],
    );
    example.shows("GET /other", &[], 404, &["no such service"]);
    let challenge = "\r\nWWW-Authenticate: Basic realm=\"operations\"";
    example.shows("GET /admin/", &[], 401, &[challenge]);
    let url = format!("http://{}/admin/", example.addresses[0]);
    for (password, status) in [("correct horse battery staple", 200), ("wrong", 401)] {
        let user = format!("ops:{password}");
        has(&curl(&["-i", "-u", &user, &url]).out, status, &[]);
    }
}

#[test]
fn lab_example_works() {
    let example = Example::of("lab").on_free_port("127.0.0.1:8080").start();
    example.shows("GET /?s=1k", &[], 200, &["\r\nContent-Length: 1024\r\n"]);
    example.shows("GET /?r=503", &[], 503, &[]);
    example.shows("GET /empty", &[], 200, &["\r\nContent-Length: 0\r\n"]);
    example.shows("GET /teapot", &[], 418, &["\r\nX-Spout: yes\r\n"]);
}
