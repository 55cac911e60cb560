//! One second of a server's activity.

use serde_json::Value;

/// Parsed response of `/v1/live`. Missing members are zero, empty or `None`.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Description of the process: version, process id, phase, configuration, driver, uptime.
    pub server: String,
    /// Length of the interval in seconds.
    pub interval: f64,
    /// Sum over all listeners.
    pub total: Traffic,
    /// Open connections.
    pub connections: u64,
    /// Number of requests in flight.
    pub in_flight: u64,
    /// Cores in the order of their numbers.
    pub cores: Vec<Core>,
    /// Routes of the current and of earlier configurations.
    pub routes: Vec<Traffic>,
    /// Groups with their servers.
    pub groups: Vec<Group>,
    /// The oldest requests in flight.
    pub requests: Vec<Request>,
    /// Number of requests in flight that `requests` leaves out.
    pub requests_not_listed: u64,
    /// Cores that did not respond; their figures are missing from the sums.
    pub unresponsive_cores: Vec<u64>,
}

/// Requests that ended within the interval: of a route, a group, a server, or in total.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Name of the route, group or server.
    pub name: String,
    /// Requests per second.
    pub rate: f64,
    /// Responses with a 5xx status and requests without a response, per second.
    pub errors: f64,
    /// Bytes sent in responses per second.
    pub bytes: f64,
    /// Median duration in seconds.
    pub p50: Option<f64>,
    /// 99th percentile of the duration in seconds.
    pub p99: Option<f64>,
}

/// One core over the interval.
#[derive(Clone, Debug, Default)]
pub struct Core {
    /// Number of the core.
    pub number: u64,
    /// CPU that the core is pinned to.
    pub cpu: Option<u64>,
    /// Share of the interval for which the core ran.
    pub busy: f64,
    /// Share of the interval for which the core waited for its CPU.
    pub waiting: Option<f64>,
    /// Share of its CPU's time spent in softirqs.
    pub softirq: Option<f64>,
    /// Requests per second.
    pub rate: f64,
    /// Open connections.
    pub connections: u64,
}

/// A group of servers.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Requests forwarded to the group.
    pub traffic: Traffic,
    /// Number of requests in flight to its servers.
    pub in_flight: u64,
    /// Number of requests that wait for a free server.
    pub queued: u64,
    /// Servers in the order of the configuration.
    pub servers: Vec<Server>,
}

/// A server of a group.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Name of its group.
    pub group: String,
    /// Its address.
    pub address: String,
    /// `up`, or the reason why it is not.
    pub state: String,
    /// State set by an administrator.
    pub admin_state: String,
    /// Number of requests in flight to it.
    pub in_flight: u64,
    /// Its responses. The percentiles are times to the first byte.
    pub traffic: Traffic,
}

/// A request in flight.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Seconds since its head was complete.
    pub age: f64,
    /// Stage of its processing.
    pub state: String,
    /// Address of the client.
    pub client: String,
    /// Server that it is forwarded to.
    pub server: String,
    /// Method and target.
    pub line: String,
}

impl Snapshot {
    /// Parses the response of `/v1/live`.
    pub fn of(said: &Value) -> Snapshot {
        let interval = said["interval"].as_f64().filter(|&seconds| seconds > 0.0);
        let interval = interval.unwrap_or(1.0);
        let status = &said["status"];
        let server = format!(
            "onrush {}, process {}, {}, configuration {}, {}, up {}",
            word(&status["version"]),
            word(&status["process"]),
            word(&status["phase"]),
            word(&status["generation"]),
            word(&status["driver"]),
            clock(number(&status["uptime"])),
        );
        let groups = all(&said["groups"]).map(|group| Group::of(group, interval));
        let routes = all(&said["routes"]).map(|route| Traffic::of(route, interval, "duration"));
        let cores = all(&said["cores"]).map(|core| Core::of(core, interval, status));
        Snapshot {
            server,
            interval,
            total: total(&said["listeners"], interval),
            connections: number(&status["connections"]),
            in_flight: number(&status["in_flight"]),
            cores: cores.collect(),
            routes: routes.collect(),
            groups: groups.collect(),
            requests: all(&said["requests"]).map(Request::of).collect(),
            requests_not_listed: number(&said["not_listed"]),
            unresponsive_cores: all(&said["silent_cores"]).map(number).collect(),
        }
    }

    /// All servers of all groups.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.groups.iter().flat_map(|group| &group.servers)
    }
}

/// Sum over all listeners. Percentiles cannot be added: the result has the highest of any listener.
fn total(listeners: &Value, interval: f64) -> Traffic {
    let mut total = Traffic::default();
    for listener in all(listeners) {
        let one = Traffic::of(listener, interval, "duration");
        total.rate += one.rate;
        total.errors += one.errors;
        total.bytes += one.bytes;
        total.p50 = longer(total.p50, one.p50);
        total.p99 = longer(total.p99, one.p99);
    }
    total
}

fn longer(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

impl Traffic {
    fn of(said: &Value, interval: f64, times: &str) -> Traffic {
        let count = |value: &Value| number(value) as f64 / interval;
        let responses = &said["responses"];
        Traffic {
            name: word(&said["name"]),
            rate: count(&said["requests"]),
            errors: count(&responses["5xx"]) + count(&said["without_response"]),
            bytes: count(&said["bytes_sent"]),
            p50: said[times]["p50"].as_f64(),
            p99: said[times]["p99"].as_f64(),
        }
    }
}

impl Core {
    fn of(said: &Value, interval: f64, status: &Value) -> Core {
        let number_of = number(&said["core"]);
        let mut cores = all(&status["cores"]);
        let status = cores.find(|core| number(&core["core"]) == number_of);
        Core {
            number: number_of,
            cpu: said["cpu"].as_u64(),
            busy: said["busy"].as_f64().unwrap_or(0.0),
            waiting: said["waiting"].as_f64(),
            softirq: said["softirq"].as_f64(),
            rate: number(&said["requests"]) as f64 / interval,
            connections: status.map_or(0, |core| number(&core["connections"])),
        }
    }
}

impl Group {
    fn of(said: &Value, interval: f64) -> Group {
        let name = word(&said["name"]);
        let servers = all(&said["servers"]).map(|server| Server::of(server, interval, &name));
        Group {
            servers: servers.collect(),
            traffic: Traffic::of(said, interval, "duration"),
            in_flight: number(&said["in_flight"]),
            queued: number(&said["queued"]),
        }
    }
}

impl Server {
    fn of(said: &Value, interval: f64, group: &str) -> Server {
        let responses = &said["responses"];
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let responded: u64 = classes.iter().map(|class| number(&responses[class])).sum();
        let failures = number(&said["failures"]);
        Server {
            group: group.to_owned(),
            address: word(&said["address"]),
            state: word(&said["state"]),
            admin_state: word(&said["wanted"]),
            in_flight: number(&said["in_flight"]),
            traffic: Traffic {
                name: word(&said["name"]),
                rate: responded as f64 / interval,
                errors: (number(&responses["5xx"]) + failures) as f64 / interval,
                bytes: 0.0,
                p50: said["first_byte"]["p50"].as_f64(),
                p99: said["first_byte"]["p99"].as_f64(),
            },
        }
    }

    /// The server's state, or the administrator's setting if that differs.
    pub fn condition(&self) -> String {
        match self.admin_state.as_str() {
            "up" | "-" => self.state.clone(),
            wanted => format!("{wanted} by hand"),
        }
    }
}

impl Request {
    fn of(said: &Value) -> Request {
        Request {
            age: said["age"].as_f64().unwrap_or(0.0),
            state: word(&said["state"]),
            client: word(&said["client"]),
            server: word(&said["server"]),
            line: format!("{} {}", word(&said["method"]), word(&said["target"])),
        }
    }
}

fn all(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn number(value: &Value) -> u64 {
    let seconds = || value.as_f64().unwrap_or(0.0) as u64;
    value.as_u64().unwrap_or_else(seconds)
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn clock(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let time = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    match days {
        0 => time,
        days => format!("{days} d {time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_are_converted_to_rates() {
        let moment = Snapshot::of(&json!({
            "interval": 2.0,
            "status": { "version": "1", "process": 7, "phase": "ready", "generation": 3, "driver": "epoll",
                "uptime": 90061.5, "connections": 5, "in_flight": 1, "cores": [{ "core": 0, "connections": 5 }] },
            "cores": [{ "core": 0, "cpu": 1, "busy": 0.5, "waiting": null, "softirq": 0.1, "requests": 10 }],
            "listeners": [
                { "requests": 10, "responses": { "5xx": 2 }, "without_response": 2, "bytes_sent": 400, "duration": { "p50": 0.1, "p99": 0.2 } },
                { "requests": 0, "responses": {}, "duration": { "p50": null } },
            ],
            "groups": [{ "name": "app", "requests": 4, "servers": [
                { "name": "a", "address": "10.0.0.1:80", "state": "ejected", "wanted": "drain", "responses": { "2xx": 3, "5xx": 1 }, "failures": 2 },
            ] }],
            "silent_cores": [1],
        }));
        assert!(
            moment
                .server
                .contains("process 7, ready, configuration 3, epoll, up 1 d 01:01:01")
        );
        assert_eq!((moment.total.rate, moment.total.errors), (5.0, 2.0));
        assert_eq!((moment.total.bytes, moment.total.p99), (200.0, Some(0.2)));
        let core = &moment.cores[0];
        assert_eq!(
            (core.rate, core.connections, core.softirq),
            (5.0, 5, Some(0.1))
        );
        let server = moment.servers().next().expect("one");
        assert_eq!((server.traffic.rate, server.traffic.errors), (2.0, 1.5));
        assert_eq!(
            (&*server.condition(), &*server.group),
            ("drain by hand", "app")
        );
        assert_eq!(moment.unresponsive_cores, [1]);
    }

    #[test]
    fn invalid_response_gives_empty_snapshot() {
        let moment = Snapshot::of(&Value::Null);
        assert_eq!((moment.interval, moment.routes.len()), (1.0, 0));
    }
}
