//! Client connections that match a query, as JSON. Times are in seconds.

use std::cmp::Reverse;
use std::time::Duration;

use onrush_serve::{
    ConnectionOrder, ConnectionQuery, ConnectionView, ConnectionsView, RequestView,
};
use serde_json::{Value, json};

/// Merges the connections found by all cores.
pub(crate) fn connections(
    found: &[ConnectionsView],
    query: &ConnectionQuery,
    silent: &[usize],
) -> Value {
    let mut all: Vec<&ConnectionView> = found.iter().flat_map(|of| &of.listed).collect();
    all.sort_by_key(|one| Reverse(rank(one, query.order)));
    let matching: u64 = found.iter().map(|of| of.matching).sum();
    let listed: Vec<Value> = all.into_iter().take(query.limit).map(connection).collect();
    json!({
        "open": found.iter().map(|of| of.open).sum::<u64>(),
        "matching": matching,
        "not_listed": matching.saturating_sub(listed.len() as u64),
        "connections": listed,
        "silent_cores": silent,
    })
}

/// Sort key: higher comes first.
fn rank(one: &ConnectionView, order: ConnectionOrder) -> u128 {
    match order {
        ConnectionOrder::Age => one.age.as_nanos(),
        ConnectionOrder::Idle => one.idle.unwrap_or_default().as_nanos(),
        ConnectionOrder::Bytes => one
            .bytes
            .map_or(0, |(input, output)| (input + output).into()),
        ConnectionOrder::Requests => one.requests.into(),
    }
}

fn connection(one: &ConnectionView) -> Value {
    json!({
        "id": id(one.core, one.number),
        "listener": one.listener,
        "state": one.state.name(),
        "peer": one.peer.map(|peer| peer.to_string()),
        "client": one.proxy_client.or(one.peer).map(|client| client.to_string()),
        "introduced": one.proxy_client.is_some(),
        "protocol": one.protocol,
        "tls": one.tls.as_ref().map(|tls| json!({
            "version": tls.version,
            "cipher": tls.cipher,
            "name": tls.name,
        })),
        "age": seconds(one.age),
        "idle": one.idle.map(seconds),
        "requests": one.requests,
        "bytes_in": one.bytes.map(|(input, _)| input),
        "bytes_out": one.bytes.map(|(_, output)| output),
        "request": one.request.as_ref().map(request),
    })
}

fn request(request: &RequestView) -> Value {
    json!({
        "age": seconds(request.age),
        "state": request.stage.name(),
        "method": request.method,
        "target": request.target,
        "server": request.server,
    })
}

/// Identifier of a connection: the number of its core, and its number on that core.
pub(crate) fn id(core: usize, number: u32) -> String {
    format!("{core}.{number}")
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_serve::ConnectionState;

    fn view(core: usize, ages: &[u64], matching: u64) -> ConnectionsView {
        let listed = ages.iter().zip(1..).map(|(&age, number)| ConnectionView {
            core,
            number,
            listener: Some("public".to_owned()),
            state: ConnectionState::Idle,
            protocol: Some("HTTP/1"),
            peer: None,
            proxy_client: Some(([192, 0, 2, 1], 40_000).into()),
            tls: None,
            age: Duration::from_secs(age),
            idle: Some(Duration::from_secs(100 - age)),
            requests: 0,
            bytes: None,
            request: None,
        });
        ConnectionsView {
            open: matching + 1,
            matching,
            listed: listed.collect(),
        }
    }

    #[test]
    fn connections_of_all_cores_are_merged_and_limited() {
        let found = [view(0, &[5, 90], 2), view(1, &[70, 1, 8], 40)];
        let ids = |query: &ConnectionQuery| -> Vec<String> {
            let said = connections(&found, query, &[]);
            assert_eq!(said["open"], 44);
            assert_eq!(said["matching"], 42);
            let listed = said["connections"].as_array().expect("a list");
            assert_eq!(said["not_listed"], 42 - listed.len());
            listed
                .iter()
                .map(|one| one["id"].as_str().unwrap_or("").to_owned())
                .collect()
        };
        let query = ConnectionQuery {
            limit: 3,
            ..ConnectionQuery::default()
        };
        assert_eq!(ids(&query), ["0.2", "1.1", "1.3"]);
        let query = ConnectionQuery {
            order: ConnectionOrder::Idle,
            ..ConnectionQuery::default()
        };
        assert_eq!(ids(&query), ["1.2", "0.1", "1.3", "1.1", "0.2"]);
        let said = connections(&found, &query, &[3]);
        let first = &said["connections"][0];
        assert_eq!(first["client"], "192.0.2.1:40000");
        assert_eq!(
            (&first["peer"], &first["bytes_in"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(said["silent_cores"], json!([3]));
    }
}
