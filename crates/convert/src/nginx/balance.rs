//! Balancing between the servers of an `upstream`.

use super::work::Context;
use crate::document::Value;
use crate::settings::group::Group;
use crate::source::directive::Directive;

/// Writes the balancing of a block into the group.
pub(super) fn write<'a>(work: &mut Context<'a>, block: &'a Directive, group: &mut Group) {
    for directive in block.inside() {
        let first = directive.argument(0);
        match directive.name() {
            "least_conn" => {
                group.put("balance", Value::text("least_connections"));
                work.notes.carried(directive);
            }
            "least_time" => {
                group.put("balance", Value::text("peak_ewma"));
                let how = "the server with the lower expected response time, of two selected at random";
                work.notes.approximated(directive, how);
            }
            "random" if first == "two" => {
                group.put("balance", Value::text("power_of_two"));
                work.notes.carried(directive);
            }
            "random" => {
                group.put("balance", Value::text("random"));
                work.notes.carried(directive);
            }
            "ip_hash" => {
                hash(group, "address");
                let how =
                    "the whole address is hashed, with a consistent hash";
                work.notes.approximated(directive, how);
            }
            "hash" => match hash_key(first) {
                Some((key, None)) => {
                    hash(group, &key);
                    work.notes.carried(directive);
                }
                Some((key, Some(how))) => {
                    hash(group, &key);
                    work.notes.approximated(directive, how);
                }
                None => work.notes.left_out(
                    directive,
                    "Onrush can hash addresses, paths, fields and cookies; requests are balanced round-robin instead",
                ),
            },
            "sticky" => sticky(work, directive, group),
            "queue" => {
                if let Ok(count) = first.parse::<u64>() {
                    let max = Value::Number(count.min(1_000_000));
                    group.put("queue", Value::table([("max", max)]));
                    let how = "the limit applies to each core";
                    work.notes.approximated(directive, how);
                }
            }
            _ => {}
        }
    }
}

fn hash(group: &mut Group, key: &str) {
    group.put("balance", Value::text("hash"));
    group.put("hash", Value::text(key));
}

/// The key that Onrush hashes instead of a variable, and a difference between them.
fn hash_key(text: &str) -> Option<(String, Option<&'static str>)> {
    let key = match text {
        "$remote_addr" | "$binary_remote_addr" => "address",
        "$uri" | "$document_uri" => "path",
        "$request_uri"
        | "$scheme$proxy_host$request_uri"
        | "$scheme$request_uri"
        | "$host$request_uri" => {
            return Some((
                "path".to_owned(),
                Some("the path is hashed without the query"),
            ));
        }
        "$host" | "$http_host" => "header:Host",
        text => {
            if let Some(cookie) = text.strip_prefix("$cookie_") {
                return Some((format!("cookie:{cookie}"), None));
            }
            let field = text.strip_prefix("$http_")?;
            return Some((
                format!("header:{}", super::variable::field_name(field)),
                None,
            ));
        }
    };
    Some((key.to_owned(), None))
}

fn sticky<'a>(work: &mut Context<'a>, directive: &'a Directive, group: &mut Group) {
    if directive.argument(0) != "cookie" || directive.argument(1).is_empty() {
        let why = "Onrush only supports sticky cookie";
        return work.notes.left_out(directive, why);
    }
    group.put("sticky", Value::text(directive.argument(1)));
    let how = "the cookie has Onrush's own attributes";
    work.notes.approximated(directive, how);
}
