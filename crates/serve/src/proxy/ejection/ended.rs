//! Ejections that end without the server: a new configuration does not eject or does not have it, or its name does not
//! have its address any more.

use onrush_config::plan::Upstream;

use super::EjectionPhase;
use crate::proxy::endpoints::{Endpoint, Endpoints, Location};
use crate::proxy::group::{Event, report};

/// Reports the servers of a group whose ejection ends when its configuration is replaced; `after` are its endpoints in
/// the next configuration, if that has the group.
pub(crate) fn report_ended(upstream: &Upstream, before: &Endpoints, after: Option<&Endpoints>) {
    for (server, address, how) in ended(upstream, before, after) {
        report((&upstream.name, &server, Some(&address)), Event::Back, &how);
    }
}

/// Reports the ejected servers among the `endpoints` of a name whose addresses are not in `found`, its next ones.
pub(crate) fn report_unassigned(
    (group, name): (&str, &str),
    endpoints: &[Endpoint],
    found: &[Location],
) {
    for address in unassigned(endpoints, found) {
        let how = "is no longer an address of its name, which ends its ejection";
        report((group, name, Some(&address)), Event::Back, &how);
    }
}

fn unassigned(endpoints: &[Endpoint], found: &[Location]) -> Vec<String> {
    let ejected = endpoints.iter().filter(|it| is_out(it) || it.is_failing());
    let gone = ejected.filter_map(Endpoint::location).filter(|location| {
        let mut found = found.iter();
        !found.any(|found| found.address == location.address)
    });
    gone.map(|location| location.address.to_string()).collect()
}

fn is_out(endpoint: &Endpoint) -> bool {
    endpoint.presence() != EjectionPhase::In
}

/// Name and address of each server whose ejection ends, with the reason.
fn ended(
    upstream: &Upstream,
    before: &Endpoints,
    after: Option<&Endpoints>,
) -> Vec<(String, String, &'static str)> {
    // Nearly always, which saves the search below.
    if !(before.all().iter()).any(|endpoint| is_out(endpoint) || endpoint.is_failing()) {
        return Vec::new();
    }
    let mut next: Vec<Option<&Endpoint>> = vec![None; before.all().len()];
    if let Some(after) = after {
        for (endpoint, position) in after.all().iter().zip(after.positions_in(before)) {
            if let Some(position) = position {
                next[position] = Some(endpoint);
            }
        }
    }
    let mut ended = Vec::new();
    for (index, server) in upstream.servers.iter().enumerate() {
        let (first, endpoints) = before.of_server(index);
        for (endpoint, next) in endpoints.iter().zip(&next[first..]) {
            let how = match (is_out(endpoint), endpoint.is_failing(), next) {
                (true, _, Some(next)) if !next.may_be_taken_out() => {
                    "is back: the new configuration cannot take it out"
                }
                (false, true, Some(next)) if !next.may_fail() => {
                    "is no longer failing: the new configuration counts no failures"
                }
                (true, _, None) => "is not in the new configuration, which ends its ejection",
                (false, true, None) => "is not in the new configuration, where it was failing",
                (true, _, Some(_)) | (false, true, Some(_)) | (false, false, _) => continue,
            };
            if let Some(location) = endpoint.location() {
                ended.push((
                    server.address.to_string(),
                    location.address.to_string(),
                    how,
                ));
            }
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use onrush_config::plan::{Eject, EjectOn, Server, ServerAddress};
    use onrush_engine::{Address, Instant};

    use super::*;
    use crate::proxy::ejection::recheck_delay::{Cause, RecheckDelays};

    fn upstream(servers: &[u8], eject: Option<Eject>) -> Upstream {
        let address = |last| ServerAddress::Ip(([10, 0, 0, last], 80).into());
        let servers = servers.iter().map(|&last| Server::at(address(last)));
        let mut upstream = Upstream::new("app".into(), servers.collect());
        upstream.eject = eject;
        upstream
    }

    #[test]
    fn ejection_ends_when_dns_address_is_removed() {
        let eject = Eject::on(EjectOn::Connections);
        let mut plan = upstream(&[1], Some(eject));
        plan.servers[0].address = ServerAddress::Name {
            host: "app".into(),
            port: 80,
        };
        plan.servers[0].addresses_max = 4;
        let endpoints = Endpoints::new(&plan, None);
        let now = Instant::from_nanoseconds(1);
        let found = [1, 2, 3].map(|last| Location {
            address: Address::Tcp(([10, 0, 0, last], 80).into()),
            weight: 1,
            backup: false,
        });
        endpoints.assign(0, &found, now);
        let terms = RecheckDelays::from(&eject);
        assert!(
            endpoints
                .eject_server(1, Cause::Unreachable, &terms, now)
                .is_some()
        );
        let gone = |found: &[Location]| unassigned(endpoints.of_server(0).1, found);
        assert!(gone(&found[1..]).is_empty(), "the first was in service");
        assert_eq!(gone(&found[..1]), ["10.0.0.2:80"]);
    }

    #[test]
    fn ejection_ends_when_reload_removes_server_or_ejection() {
        let eject = Eject::on(EjectOn::Connections);
        let plan = upstream(&[1, 2, 3], Some(eject));
        let before = Endpoints::new(&plan, None);
        let back = |next: Option<&Upstream>| -> Vec<(String, bool)> {
            let after = next.map(|next| Endpoints::new(next, Some(&before)));
            let ended = ended(&plan, &before, after.as_ref()).into_iter();
            ended
                .map(|(server, _, how)| (server, how.starts_with("is back")))
                .collect()
        };
        assert_eq!(back(None), [], "all are in service");
        let now = Instant::from_nanoseconds(1);
        let out = before.eject_server(1, Cause::Unreachable, &RecheckDelays::from(&eject), now);
        assert!(out.is_some());
        let second = || "10.0.0.2:80".to_owned();
        for (servers, eject, expected) in [
            (&[1, 2, 3][..], Some(eject), vec![]),
            (&[2, 1], Some(eject), vec![]),
            (&[3, 2, 1], None, vec![(second(), true)]),
            (&[2], Some(eject), vec![(second(), true)]),
            (&[1, 3], Some(eject), vec![(second(), false)]),
        ] {
            let next = upstream(servers, eject);
            assert_eq!(back(Some(&next)), expected, "{servers:?} {eject:?}");
        }
        assert_eq!(back(None), [(second(), false)], "the group is gone");
    }
}
