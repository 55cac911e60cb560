//! Resolution by a name server on loopback whose zone changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hickory_resolver::config::NameServerConfig;
use hickory_resolver::proto::op::{Message, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, CNAME, SRV};
use hickory_resolver::proto::rr::{Name as DomainName, RData, Record, RecordType};
use onrush_config::plan::Server;

use super::directory::{has_route, reachable};
use super::*;
use crate::proxy::endpoints::Endpoint;

/// Timeout for conditions in tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A name server for one zone, until it is dropped.
struct NameServer {
    address: SocketAddrV4,
    zone: Arc<Mutex<Zone>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Zone {
    records: Vec<Record>,
    manner: Manner,
    /// The queries received.
    asked: Vec<(String, RecordType)>,
}

/// How the server answers.
#[derive(Default)]
enum Manner {
    #[default]
    Truthful,
    /// With SERVFAIL.
    Failing,
    Silent,
}

impl NameServer {
    fn start(records: &[Record]) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let SocketAddr::V4(address) = socket.local_addr().expect("bound") else {
            unreachable!("it is bound to one");
        };
        let zone = Arc::new(Mutex::new(Zone {
            records: records.to_vec(),
            ..Zone::default()
        }));
        let answering = Arc::clone(&zone);
        let thread = thread::spawn(move || answer(&socket, &answering));
        Self {
            address,
            zone,
            thread: Some(thread),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Zone)) {
        change(&mut self.zone.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn set(&self, records: &[Record]) {
        self.change(|zone| {
            zone.records = records.to_vec();
            zone.manner = Manner::Truthful;
        });
    }

    fn behave(&self, manner: Manner) {
        self.change(|zone| zone.manner = manner);
    }

    /// Number of queries for a name's A records.
    fn asked(&self, name: &str) -> usize {
        let zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = zone.asked.iter();
        asked
            .filter(|(asked, kind)| asked == name && *kind == RecordType::A)
            .count()
    }

    /// Starts a resolver for a group that uses this name server.
    fn resolve(&self, servers: Vec<Server>) -> (Resolver, Arc<Endpoints>) {
        self.resolve_behind(servers, None)
    }

    /// `resolve` for a group with a previous configuration.
    fn resolve_behind(
        &self,
        servers: Vec<Server>,
        before: Option<&Endpoints>,
    ) -> (Resolver, Arc<Endpoints>) {
        let upstream = Upstream::new("app".into(), servers);
        let endpoints = Arc::new(Endpoints::new(&upstream, before));
        let mut server = NameServerConfig::udp((*self.address.ip()).into());
        server.connections[0].port = self.address.port();
        let setting = NameServers::NameServer(server);
        let all_endpoints = [Arc::clone(&endpoints)];
        let resolver = Resolver::start_with(setting, &[upstream], &all_endpoints);
        let resolver = resolver.expect("a thread").expect("there are names");
        (resolver, endpoints)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        let waker = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        waker.send_to(&[], self.address).expect("loopback");
        let thread = self.thread.take().expect("it is taken here only");
        thread.join().expect("a name server that does not panic");
    }
}

/// Answers queries until an empty datagram arrives.
fn answer(socket: &UdpSocket, zone: &Mutex<Zone>) {
    let mut buffer = [0; 4096];
    loop {
        let (length, client) = socket.recv_from(&mut buffer).expect("loopback");
        if length == 0 {
            return;
        }
        let asked = Message::from_vec(&buffer[..length]).expect("a message of ours");
        let mut zone = zone.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = zone.answer(&asked) {
            let bytes = answer.to_vec().expect("it is small");
            socket.send_to(&bytes, client).expect("loopback");
        }
    }
}

impl Zone {
    fn answer(&mut self, asked: &Message) -> Option<Message> {
        let query: &Query = &asked.queries[0];
        let name = query.name().to_ascii();
        self.asked.push((name, query.query_type()));
        let mut answer = Message::response(asked.metadata.id, OpCode::Query);
        answer.add_query(query.clone());
        match self.manner {
            Manner::Silent => return None,
            Manner::Failing => answer.metadata.response_code = ResponseCode::ServFail,
            Manner::Truthful => {
                let is_of = |record: &&Record| record.name == *query.name();
                if !self.records.iter().any(|record| is_of(&record)) {
                    answer.metadata.response_code = ResponseCode::NXDomain;
                }
                let kinds = [query.query_type(), RecordType::CNAME];
                let records = self.records.iter().filter(is_of);
                let of_kind = records.filter(|record| kinds.contains(&record.record_type()));
                answer.add_answers(of_kind.cloned());
            }
        }
        Some(answer)
    }
}

fn name(text: &str) -> DomainName {
    DomainName::from_ascii(text).expect("a name")
}

/// An A record of a host on loopback.
fn a(host: &str, last: u8, ttl: u32) -> Record {
    Record::from_rdata(name(host), ttl, RData::A(A::new(127, 0, 0, last)))
}

fn srv(service: &str, priority: u16, weight: u16, port: u16, host: &str) -> Record {
    let srv = SRV::new(priority, weight, port, name(host));
    Record::from_rdata(name(service), 0, RData::SRV(srv))
}

fn host(host: &str, port: u16) -> Server {
    Server::at(ServerAddress::Name {
        host: host.into(),
        port,
    })
}

/// Locations of a configured server: last byte of the address, port, weight and whether it is a backup.
fn places(endpoints: &Endpoints, server: usize) -> Vec<(u8, u16, u32, bool)> {
    let (_, endpoints) = endpoints.of_server(server);
    let mut places: Vec<_> = endpoints
        .iter()
        .filter_map(Endpoint::location)
        .map(|at| match at.address {
            Address::Tcp(SocketAddr::V4(address)) => {
                let last = address.ip().octets()[3];
                (last, address.port(), at.weight, at.backup)
            }
            other => panic!("{other} was never an answer"),
        })
        .collect();
    places.sort_unstable();
    places
}

/// Last bytes of the addresses of the only server.
fn hosts(endpoints: &Endpoints) -> Vec<u8> {
    places(endpoints, 0).iter().map(|place| place.0).collect()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = clock::now() + PATIENCE;
    while !condition() {
        assert!(clock::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn start_waits_for_resolution() {
    let server = NameServer::start(&[
        a("app.example.", 1, 60),
        a("app.example.", 2, 60),
        a("other.example.", 3, 60),
        Record::from_rdata(
            name("alias.example."),
            60,
            RData::CNAME(CNAME(name("other.example."))),
        ),
    ]);
    let (_resolver, endpoints) = server.resolve(vec![
        Server {
            weight: 3,
            ..host("app.example", 80)
        },
        Server::at(ServerAddress::Ip(([127, 0, 0, 9], 80).into())),
        host("app.example", 81),
        Server {
            backup: true,
            ..host("alias.example", 80)
        },
    ]);
    assert_eq!(
        places(&endpoints, 0),
        [(1, 80, 3, false), (2, 80, 3, false)]
    );
    assert_eq!(places(&endpoints, 1), [(9, 80, 1, false)]);
    assert_eq!(
        places(&endpoints, 2),
        [(1, 81, 1, false), (2, 81, 1, false)]
    );
    assert_eq!(places(&endpoints, 3), [(3, 80, 1, true)]);
    assert_eq!(server.asked("app.example."), 1, "one name, two servers");
}

#[test]
#[ignore = "slow: make test-all"]
fn addresses_follow_dns() {
    let server = NameServer::start(&[a("app.example.", 1, 0)]);
    let (_resolver, endpoints) = server.resolve(vec![host("app.example", 80)]);
    assert_eq!(hosts(&endpoints), [1]);
    server.set(&[a("app.example.", 1, 0), a("app.example.", 2, 0)]);
    until("an address that was added", || hosts(&endpoints) == [1, 2]);
    server.set(&[a("app.example.", 2, 0)]);
    until("an address that has gone", || hosts(&endpoints) == [2]);
    for manner in [Manner::Failing, Manner::Silent] {
        server.behave(manner);
        let before = server.asked("app.example.");
        until("more questions", || {
            server.asked("app.example.") > before + 1
        });
        assert_eq!(hosts(&endpoints), [2]);
    }
    server.set(&[a("app.example.", 3, 0)]);
    until("an answer after failures", || hosts(&endpoints) == [3]);
    server.set(&[]);
    until("a name that has gone", || hosts(&endpoints).is_empty());
    server.set(&[a("app.example.", 4, 0)]);
    until("a name that is there again", || hosts(&endpoints) == [4]);
}

#[test]
fn reload_keeps_addresses_until_answered() {
    let server = NameServer::start(&[a("app.example.", 1, 0)]);
    let (first, before) = server.resolve(vec![host("app.example", 80)]);
    assert_eq!(hosts(&before), [1]);
    drop(first);
    server.behave(Manner::Failing);
    let servers = vec![host("app.example", 80)];
    let (_second, endpoints) = server.resolve_behind(servers, Some(&before));
    let asked = server.asked("app.example.");
    until("more questions", || {
        server.asked("app.example.") > asked + 1
    });
    assert_eq!((hosts(&before), hosts(&endpoints)), (vec![1], vec![1]));
    server.set(&[a("app.example.", 2, 0)]);
    server.behave(Manner::Truthful);
    until("an answer", || hosts(&endpoints) == [2]);
}

#[test]
fn ttl_limits_queries() {
    let server = NameServer::start(&[a("long.example.", 1, 600), a("short.example.", 2, 0)]);
    let (_resolver, _endpoints) =
        server.resolve(vec![host("long.example", 80), host("short.example", 80)]);
    until("more questions", || server.asked("short.example.") > 2);
    assert_eq!(server.asked("long.example."), 1);
}

#[test]
fn srv_records_set_port_weight_and_backup() {
    let service = "_http._tcp.example.";
    let server = NameServer::start(&[
        srv(service, 10, 3, 8001, "one.example."),
        srv(service, 10, 1, 8002, "two.example."),
        srv(service, 20, 1, 8003, "three.example."),
        srv(service, 10, 1, 8004, "nobody.example."),
        a("one.example.", 1, 0),
        a("two.example.", 2, 0),
        a("three.example.", 3, 0),
    ]);
    let (_resolver, endpoints) = server.resolve(vec![Server::at(ServerAddress::Srv(
        "_http._tcp.example".into(),
    ))]);
    let expected = [(1, 8001, 3, false), (2, 8002, 1, false), (3, 8003, 1, true)];
    assert_eq!(places(&endpoints, 0), expected);
    server.set(&[
        srv(service, 20, 1, 8003, "three.example."),
        a("three.example.", 3, 0),
    ]);
    until("the last service", || {
        places(&endpoints, 0) == [(3, 8003, 1, false)]
    });
    // RFC 2782: "the service is decidedly not available at this domain".
    server.set(&[srv(service, 0, 0, 0, ".")]);
    until("no service", || places(&endpoints, 0).is_empty());
}

#[test]
fn unresolved_name_does_not_block() {
    let server = NameServer::start(&[a("app.example.", 1, 0)]);
    server.behave(Manner::Silent);
    let (resolver, endpoints) = server.resolve(vec![host("app.example", 80)]);
    assert!(hosts(&endpoints).is_empty());
    server.behave(Manner::Truthful);
    until("the first answer", || hosts(&endpoints) == [1]);
    server.behave(Manner::Silent);
    let before = server.asked("app.example.");
    until("a question in flight", || {
        server.asked("app.example.") > before
    });
    drop(resolver);
}

#[test]
fn surplus_addresses_are_ignored() {
    let records: Vec<Record> = (1..=40).map(|last| a("app.example.", last, 0)).collect();
    let count: u8 = 16;
    let server = NameServer::start(&records[10..]);
    let (_resolver, endpoints) = server.resolve(vec![Server {
        addresses_max: 16,
        ..host("app.example", 80)
    }]);
    let first: Vec<u8> = (11..11 + count).collect();
    assert_eq!(hosts(&endpoints), first);
    let before = server.asked("app.example.");
    server.set(&records);
    until("more questions", || {
        server.asked("app.example.") > before + 1
    });
    assert_eq!(hosts(&endpoints), first);
}

#[test]
fn default_uses_all_addresses() {
    let mut records: Vec<Record> = (1..=20).map(|last| a("app.example.", last, 0)).collect();
    for last in 21..=40 {
        let host = format!("pod{last}.example.");
        records.push(a(&host, last, 0));
        records.push(srv("_http._tcp.example.", 0, 1, 8080, &host));
    }
    let server = NameServer::start(&records);
    let service = Server::at(ServerAddress::Srv("_http._tcp.example".into()));
    let (_resolver, endpoints) = server.resolve(vec![host("app.example", 80), service]);
    let of = |server| -> Vec<u8> {
        let places = places(&endpoints, server);
        places.iter().map(|place| place.0).collect()
    };
    let twenty = |first: u8| -> Vec<u8> { (first..first + 20).collect() };
    until("all addresses", || {
        of(0) == twenty(1) && of(1) == twenty(21)
    });
}

#[test]
fn unroutable_addresses_are_removed() {
    let four: IpAddr = Ipv4Addr::new(10, 0, 0, 1).into();
    let six: IpAddr = Ipv6Addr::LOCALHOST.into();
    for (addresses, left) in [
        (vec![six, four], vec![four]),
        (vec![four], vec![four]),
        (vec![six], vec![six]),
    ] {
        assert_eq!(reachable(addresses, |ip| ip.is_ipv4()), left);
    }
    assert!(has_route(Ipv4Addr::LOCALHOST.into()));
    // Connecting to a broadcast address requires SO_BROADCAST, which is not set.
    assert!(!has_route(Ipv4Addr::BROADCAST.into()));
}

#[test]
fn no_resolver_without_names() {
    let server = Server::at(ServerAddress::Ip(([127, 0, 0, 1], 80).into()));
    let upstream = Upstream::new("app".into(), vec![server]);
    let all_endpoints = [Arc::new(Endpoints::new(&upstream, None))];
    let resolver = Resolver::start(&[upstream], &all_endpoints).expect("nothing to do");
    assert!(resolver.is_none());
}
