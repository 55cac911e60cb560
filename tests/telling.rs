//! Reports of a running server: events, and its error log.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::administering::{Administered, responding, whole};
use crate::application::Application;
use crate::program::{Program, drivers, onrush, until};

/// A group of a server that responds and an address on which nothing listens.
fn with_a_dead_server(application: &Application, dead: &str) -> String {
    format!(
        "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{}\", \"{dead}\"]\n",
        application.address
    )
}

fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

fn kinds(events: &Value) -> Vec<&str> {
    let events = events.as_array().expect("a list").iter();
    events.filter_map(|event| event["event"].as_str()).collect()
}

#[test]
fn server_events_are_recorded() {
    for io in drivers() {
        let (application, dead) = (Application::start("one"), unused_address());
        let server = Administered::start(io, &with_a_dead_server(&application, &dead));
        assert_eq!(server.ctl(&["events"]).out, "no events yet\n");
        until("an ejection", || {
            server.serve.body();
            let events = server.said("events");
            kinds(&events["events"])
                .contains(&"server_ejected")
                .then_some(())
        });
        let changed = server.ctl(&["server", "app", &dead, "down"]);
        assert_eq!(changed.code, Some(0), "{changed:?}");
        let events = server.said("events");
        assert_eq!(kinds(&events["events"]), ["server_ejected", "server_set"]);
        assert_eq!(events["last"], 2, "{events}");
        let (ejected, set) = (&events["events"][0], &events["events"][1]);
        for event in [ejected, set] {
            for (name, value) in [("group", "app"), ("server", &*dead), ("address", &dead)] {
                assert_eq!(event[name], value, "{event}");
            }
        }
        assert_eq!(
            (&ejected["number"], &ejected["level"]),
            (&1.into(), &"warn".into())
        );
        let message = ejected["message"].as_str().expect("a sentence");
        assert!(
            message.starts_with(&format!("server {dead} of app is out until")),
            "{message}"
        );
        assert_eq!(
            set["message"],
            format!("server {dead} of app was set to down by a command")
        );
        // The same events are listed for the server, and none for the other one.
        let groups = server.said("servers");
        let servers = &groups["groups"][0]["servers"];
        assert_eq!(kinds(&servers[0]["events"]), Vec::<&str>::new());
        assert_eq!(
            kinds(&servers[1]["events"]),
            ["server_ejected", "server_set"]
        );
        let shown = server.ctl(&["servers"]).out;
        assert!(shown.contains("set 2"), "{shown}");
        // Events after a known one.
        let mut client = server.client();
        client.send(b"GET /v1/events?after=1 HTTP/1.1\r\nHost: h\r\n\r\n");
        let later = client.receive().expect("a response");
        assert!(
            later.contains("server_set") && !later.contains("server_ejected"),
            "{later}"
        );
        client.send(b"GET /v1/events?after=x HTTP/1.1\r\nHost: h\r\n\r\n");
        let refused = client.receive().expect("a response");
        assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
        client.send(b"HEAD /v1/events HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let mut head = String::new();
        client.0.read_to_string(&mut head).expect("a response");
        assert!(
            head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
        server.serve.stop();
    }
}

#[test]
fn events_are_followed_until_server_exits() {
    let server = Administered::start("auto", &responding("one"));
    let address = format!("unix:{}", server.socket.display());
    let words = ["ctl", "--address", &address, "events", "--follow"];
    let follower = Program::start(&mut onrush(&words));
    let client = server.client();
    let mut lines = BufReader::new(client.0.try_clone().expect("a socket")).lines();
    let mut client = client;
    client.send(b"GET /v1/events HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n");
    let head = lines.next().expect("a response").expect("a line");
    assert_eq!(head, "HTTP/1.1 200 OK");
    for generation in 2..5 {
        assert_eq!(server.ctl(&["reload"]).code, Some(0));
        let words = format!("in force as generation {generation}: no changes in the file");
        follower.out.wait_for(&words);
    }
    let mut next = |start: &str| {
        let mut found = lines.by_ref().map(|line| line.expect("a line"));
        found
            .find_map(|line| line.strip_prefix(start).map(str::to_owned))
            .expect("it goes on")
    };
    for number in 1..4 {
        assert_eq!(next("id: "), number.to_string());
        assert_eq!(next("event: "), "reload");
        let event: Value = serde_json::from_str(&next("data: ")).expect("JSON");
        assert_eq!(event["generation"], (number + 1).to_string(), "{event}");
    }
    // A client that follows events does not delay the shutdown.
    server.serve.program.signal(Signal::TERM);
    let finished = follower.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    server.serve.program.err.wait_for("SIGTERM");
}

#[test]
fn follower_ends_when_server_is_killed() {
    let server = Administered::start("auto", &responding("one"));
    let address = format!("unix:{}", server.socket.display());
    let words = ["ctl", "--address", &address, "events", "--follow"];
    let follower = Program::start(&mut onrush(&words));
    assert_eq!(server.ctl(&["reload"]).code, Some(0));
    follower.out.wait_for("in force as generation 2");
    server.serve.program.signal(Signal::KILL);
    let finished = follower.finish();
    assert_eq!(finished.code, Some(2), "{finished:?}");
    let expected = "the connection closed before the server ended the stream";
    assert!(finished.err.contains(expected), "{finished:?}");
}

#[test]
fn error_log_follows_level_and_format() {
    let server = Administered::start("auto", &responding("one"));
    assert_eq!(server.ctl(&["log", "level"]).out, "info\n");
    let refused = server.ctl(&["log", "level", "loud"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused
            .err
            .contains("\"loud\" is not a level: expected one of error, warn, info, debug"),
        "{refused:?}"
    );
    assert_eq!(server.ctl(&["log", "level", "error"]).out, "error\n");
    assert_eq!(server.ctl(&["drain"]).code, Some(0));
    // Not logged at this level, but recorded as an event.
    assert_eq!(kinds(&server.said("events")["events"]), ["drain"]);
    let log = "log = { error_format = \"json\", error_level = \"info\" }\n";
    let text = format!("{log}{}", whole(&server.socket, &responding("two")));
    fs::write(&server.path, text).expect("it is ours");
    assert_eq!(server.ctl(&["reload"]).code, Some(0));
    assert_eq!(server.ctl(&["log", "level"]).out, "info\n");
    server.serve.program.err.wait_for("\"event\":\"reload\"");
    server.serve.program.signal(Signal::TERM);
    let finished = server.serve.program.finish();
    assert!(!finished.err.contains("ctl drain"), "{finished:?}");
    let line = finished
        .err
        .lines()
        .find(|line| line.contains("\"event\":\"reload\""))
        .expect("it was there");
    let line: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(
        (&line["level"], &line["generation"]),
        (&"info".into(), &2.into())
    );
    let message = line["message"].as_str().expect("a sentence");
    assert!(
        message.ends_with("is in force as generation 2: 2 changes"),
        "{message}"
    );
    assert!(
        line["time"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z')),
        "{line}"
    );
}

#[test]
fn slow_follower_is_dropped() {
    let server = Administered::start("auto", &responding("one"));
    let mut silent = server.client();
    silent
        .0
        .set_read_timeout(Some(Duration::from_secs(1)))
        .expect("not zero");
    silent.send(b"GET /v1/events HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n");
    // More than a socket buffers, while the interface serves others.
    let mut busy = server.client();
    for _ in 0..1500 {
        busy.send(b"POST /v1/drain HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
        let drained = busy.receive().expect("a response");
        assert!(drained.starts_with("HTTP/1.1 200 "), "{drained}");
    }
    let events = server.said("events");
    assert_eq!(events["events"].as_array().map(Vec::len), Some(1000));
    assert_eq!(events["last"], 1500);
    server.serve.stop();
}

#[test]
fn error_log_omits_configuration_text() {
    let server = Administered::start("auto", &responding("one"));
    let bad = "[[route]]\nresponse_headers = { set = { X-Key = \"TOPSECRET\", Content-Length = \"1\" } }\nsynthetic = true\n";
    fs::write(&server.path, whole(&server.socket, bad)).expect("it is ours");
    let refused = server.ctl(&["reload"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("onrush.toml:5:"), "{refused:?}");
    let events = server.said("events");
    assert_eq!(kinds(&events["events"]), ["reload_refused"]);
    let logged = server
        .serve
        .program
        .err
        .wait_for("was rejected, generation");
    for said in [refused.err, events.to_string(), logged] {
        assert!(!said.contains("TOPSECRET"), "{said}");
    }
    server.serve.stop();
}

#[test]
fn followers_are_limited() {
    let server = Administered::start("auto", &responding("one"));
    let follow = |path: &str| {
        let mut client = server.client();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n");
        client.send(request.as_bytes());
        let mut lines = BufReader::new(client.0.try_clone().expect("a socket")).lines();
        let head = lines.next().expect("a response").expect("a line");
        (head, client)
    };
    let followers: Vec<_> = (0..8).map(|_| follow("/v1/events")).collect();
    for (head, _) in &followers {
        assert_eq!(head, "HTTP/1.1 200 OK");
    }
    for path in ["/v1/events", "/v1/live"] {
        assert_eq!(follow(path).0, "HTTP/1.1 503 Service Unavailable");
    }
    assert_eq!(server.ctl(&["status"]).code, Some(0));
    // A client that leaves frees its slot.
    drop(followers);
    until("room", || {
        (follow("/v1/events").0 == "HTTP/1.1 200 OK").then_some(())
    });
    server.serve.stop();
}
