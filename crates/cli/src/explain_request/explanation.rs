//! The explanation of a request, as JSON.

use onrush_config::RoutePlace;
use onrush_serve::{
    AppliedSetting, Choice, Explainer, Explanation, GroupForward, Outcome, UnmatchedRoute,
};
use serde_json::{Value, json};

/// Converts an explanation. `places` holds the position of each route in its file, where known.
pub(super) fn json(
    explanation: &Explanation,
    explainer: &Explainer,
    places: &[RoutePlace],
) -> Value {
    let names = explainer.route_names();
    let route = |index: usize| {
        let mut value = json!({ "number": index + 1, "name": names[index] });
        if let Some(place) = places.get(index).filter(|_| places.len() == names.len()) {
            value["line"] = place.line.into();
            if let Some(file) = &place.file {
                value["file"] = file.display().to_string().into();
            }
        }
        value
    };
    let passed = |passed: &UnmatchedRoute| {
        let mut value = route(passed.route);
        value["condition"] = passed.condition.into();
        value["expected"] = passed.expected.clone().into();
        value["found"] = passed.found.clone().into();
        value
    };
    json!({
        "listener": explanation.listener,
        "path": explanation.path,
        "passed": explanation.passed.iter().map(passed).collect::<Vec<_>>(),
        "route": explanation.route.map(route),
        "answer": outcome(&explanation.outcome),
        "limits": facts(&explanation.limits),
        "response_headers": facts(&explanation.edits),
        "unknown": explanation.unknown,
    })
}

fn facts(facts: &[AppliedSetting]) -> Value {
    let fact = |fact: &AppliedSetting| json!({ "key": fact.key, "value": fact.value });
    facts.iter().map(fact).collect()
}

fn outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Generated {
            status,
            by,
            location,
        } => json!({ "kind": "own", "status": status, "by": by, "location": location }),
        Outcome::Forward(forward) => {
            let mirror = forward.mirror.as_ref();
            let mirror = mirror.map(
                |(group, share)| json!({ "group": group, "share": f64::from(*share) / 10_000.0 }),
            );
            let groups: Vec<Value> = forward.groups.iter().map(group).collect();
            json!({ "kind": "forward", "groups": groups, "mirror": mirror })
        }
    }
}

fn group(to: &GroupForward) -> Value {
    let (servers, by) = match &to.choice {
        Choice::Exactly { server, by } => (vec![server.clone()], by),
        Choice::OneOf { servers, by } => (servers.clone(), by),
    };
    json!({
        "group": to.group,
        "weight": to.weight,
        "servers": servers,
        "by": by,
        "backups": to.backups,
        "target": to.target(),
        "host": to.host(),
        "head": to.head.trim_end().lines().collect::<Vec<_>>(),
    })
}
