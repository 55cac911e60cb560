//! Filters for listing connections.

use std::time::Duration;

use onrush_config::plan::Network;
use onrush_config::value::{parse_duration, parse_network};
use onrush_http::query::parameters;

use super::ConnectionState;
use crate::limits::{CONNECTIONS_LISTED, CONNECTIONS_LISTED_MAX};

/// Filter and order of a list of connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionQuery {
    /// Name of the listener.
    pub listener: Option<String>,
    /// Network of the socket's peer or of the address in the PROXY header.
    pub client: Option<Network>,
    /// State of the connection.
    pub state: Option<ConnectionState>,
    /// Minimum age.
    pub older_than: Duration,
    /// Sort order.
    pub order: ConnectionOrder,
    /// Maximum number.
    pub limit: usize,
}

/// Sort order of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionOrder {
    /// Oldest first.
    Age,
    /// Longest without any traffic first.
    Idle,
    /// Most bytes in both directions first.
    Bytes,
    /// Most requests first.
    Requests,
}

impl ConnectionOrder {
    const ALL: [(&str, ConnectionOrder); 4] = [
        ("age", ConnectionOrder::Age),
        ("idle", ConnectionOrder::Idle),
        ("bytes", ConnectionOrder::Bytes),
        ("requests", ConnectionOrder::Requests),
    ];
}

impl Default for ConnectionQuery {
    /// The oldest connections, up to the default limit.
    fn default() -> Self {
        Self {
            listener: None,
            client: None,
            state: None,
            older_than: Duration::ZERO,
            order: ConnectionOrder::Age,
            limit: CONNECTIONS_LISTED,
        }
    }
}

impl ConnectionQuery {
    /// Parses `listener=NAME&client=NETWORK&state=STATE&older=TIME&sort=ORDER&limit=N`; every parameter is optional.
    ///
    /// # Errors
    /// A message with the invalid text and the expected one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        let mut seen = Vec::new();
        for (name, value) in parameters(text) {
            let (name, value) = (name.decoded(), value.decoded());
            let [name, value] = [name, value].map(|it| String::from_utf8_lossy(&it).into_owned());
            if seen.contains(&name) {
                return Err(format!("{name} is given twice: expected it once"));
            }
            let invalid = |why: &dyn std::fmt::Display| format!("{name}: {why}");
            match name.as_str() {
                "listener" => query.listener = Some(value),
                "client" => {
                    let network = parse_network(&value);
                    query.client = Some(network.map_err(|why| invalid(&why))?);
                }
                "state" => query.state = Some(state(&value).map_err(|why| invalid(&why))?),
                "older" => {
                    query.older_than = parse_duration(&value).map_err(|why| invalid(&why))?;
                }
                "sort" => query.order = order(&value).map_err(|why| invalid(&why))?,
                "limit" => query.limit = limit(&value).map_err(|why| invalid(&why))?,
                _ => {
                    return Err(format!(
                        "{name:?} is unknown: expected listener, client, state, older, sort or limit"
                    ));
                }
            }
            seen.push(name);
        }
        Ok(query)
    }
}

fn state(text: &str) -> Result<ConnectionState, String> {
    let mut all = ConnectionState::ALL.into_iter();
    let found = all.find(|state| state.name() == text);
    found.ok_or_else(|| {
        let names = ConnectionState::ALL.map(ConnectionState::name).join(", ");
        format!("{text:?} is not a state: expected one of {names}")
    })
}

fn order(text: &str) -> Result<ConnectionOrder, String> {
    let found = ConnectionOrder::ALL
        .into_iter()
        .find(|(name, _)| *name == text);
    let found = found.map(|(_, order)| order);
    found.ok_or_else(|| format!("{text:?} is not an order: expected age, idle, bytes or requests"))
}

fn limit(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    let within = number.filter(|number| (1..=CONNECTIONS_LISTED_MAX).contains(number));
    within.ok_or_else(|| format!("{text:?}: expected a number from 1 to {CONNECTIONS_LISTED_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_query_is_parsed_or_rejected_with_reason() {
        assert_eq!(ConnectionQuery::parse(""), Ok(ConnectionQuery::default()));
        let text = "listener=a+b&client=10.0.0.0%2F8&state=idle&older=10s&sort=bytes&limit=7";
        let wanted = ConnectionQuery {
            listener: Some("a b".to_owned()),
            client: Some(Network::new([10, 0, 0, 0].into(), 8).expect("a network")),
            state: Some(ConnectionState::Idle),
            older_than: Duration::from_secs(10),
            order: ConnectionOrder::Bytes,
            limit: 7,
        };
        assert_eq!(ConnectionQuery::parse(text), Ok(wanted));
        for (text, why) in [
            ("core=1", "\"core\" is unknown: expected listener"),
            ("client=me", "client: \"me\" is"),
            (
                "state=busy",
                "state: \"busy\" is not a state: expected one of introduction, ",
            ),
            ("older=soon", "older: \"soon\" is not a duration: "),
            (
                "sort=name",
                "sort: \"name\" is not an order: expected age, ",
            ),
            ("limit=0", "limit: \"0\": expected a number from 1 to 1000"),
            ("limit=1001", "limit: \"1001\": expected"),
            (
                "limit=1&sort=age&limit=2",
                "limit is given twice: expected it once",
            ),
        ] {
            let said = ConnectionQuery::parse(text).expect_err(text);
            assert!(said.starts_with(why), "{text}: {said}");
        }
    }
}
