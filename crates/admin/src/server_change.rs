//! Parses changes of an upstream server's state or weight.

use onrush_serve::{AdminState, ServerChange};
use serde_json::Value;

/// Maximum weight of a server, as in a configuration.
const WEIGHT_MAX: u64 = 256;

/// Group and server (name or address), and the requested changes.
pub(crate) type RequestedChanges = ((String, String), Vec<ServerChange>);

/// Parses a request body; the error states the expected form.
pub(crate) fn parse_changes(body: &[u8]) -> Result<RequestedChanges, String> {
    const EXPECTED: &str = "expected {\"group\": NAME, \"server\": NAME or ADDRESS} with \"state\": \"up\", \"drain\" or \
                            \"down\", or \"weight\": 1 to 256, or null for the configured weight";
    let body: Value =
        serde_json::from_slice(body).map_err(|error| format!("{error}: {EXPECTED}"))?;
    let fields = body.as_object().ok_or(EXPECTED)?;
    let known = ["group", "server", "state", "weight"];
    if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("unknown key {key:?}: {EXPECTED}"));
    }
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    let (Some(group), Some(server)) = (text("group"), text("server")) else {
        return Err(EXPECTED.to_owned());
    };
    let mut changes = Vec::new();
    if let Some(state) = fields.get("state") {
        let named = AdminState::ALL
            .into_iter()
            .find(|duty| state == duty.name());
        changes.push(ServerChange::Duty(named.ok_or(EXPECTED)?));
    }
    if let Some(weight) = fields.get("weight") {
        let number = weight
            .as_u64()
            .filter(|weight| (1..=WEIGHT_MAX).contains(weight));
        let number = number.and_then(|weight| u32::try_from(weight).ok());
        if number.is_none() && !weight.is_null() {
            return Err(EXPECTED.to_owned());
        }
        changes.push(ServerChange::Weight(number));
    }
    match changes.is_empty() {
        true => Err(EXPECTED.to_owned()),
        false => Ok(((group, server), changes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_server_changes_are_refused() {
        let read = |text: &str| parse_changes(text.as_bytes());
        let place = || ("app".to_owned(), "10.0.0.1:80".to_owned());
        let both =
            read(r#"{"group": "app", "server": "10.0.0.1:80", "state": "drain", "weight": 7}"#);
        let wanted = vec![
            ServerChange::Duty(AdminState::Drain),
            ServerChange::Weight(Some(7)),
        ];
        assert_eq!(both, Ok((place(), wanted)));
        let null = read(r#"{"group": "app", "server": "10.0.0.1:80", "weight": null}"#);
        assert_eq!(null, Ok((place(), vec![ServerChange::Weight(None)])));
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"group": "app", "server": "s"}"#,
            r#"{"group": "app", "server": "s", "state": "maint"}"#,
            r#"{"group": "app", "server": "s", "weight": 0}"#,
            r#"{"group": "app", "server": "s", "weight": 257}"#,
            r#"{"group": "app", "server": "s", "weight": "7"}"#,
            r#"{"group": "app", "state": "up"}"#,
            r#"{"group": "app", "server": "s", "state": "up", "wieght": 7}"#,
        ] {
            let why = read(wrong).expect_err(wrong);
            assert!(why.contains("expected {"), "{why}");
        }
    }
}
