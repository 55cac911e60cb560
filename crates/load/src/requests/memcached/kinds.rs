//! Kinds of requests, named after the commands of their protocol. Pure.

use super::ratio::Command;
use super::{CasUnique, Dialect, MemcachedOptions};
use crate::requests::request::RequestKind;

pub(super) fn kind(asks: &MemcachedOptions, command: Command) -> RequestKind {
    let name = match (asks.dialect, command, asks.versions) {
        (Dialect::Text, Command::Get, CasUnique::No) => "get",
        (Dialect::Text, Command::Get, CasUnique::Yes) => "gets",
        (Dialect::Text, Command::Set, _) => "set",
        (Dialect::Text, Command::Delete, _) => "delete",
        (Dialect::Text, Command::Increment, _) => "incr",
        (Dialect::Meta | Dialect::MetaQuiet, Command::Get, _) => "mg",
        (Dialect::Meta | Dialect::MetaQuiet, Command::Set, _) => "ms",
        (Dialect::Meta | Dialect::MetaQuiet, Command::Delete, _) => "md",
        (Dialect::Meta | Dialect::MetaQuiet, Command::Increment, _) => "ma",
    };
    RequestKind {
        name: match (command, asks.multiget) {
            (Command::Get, 2..) => format!("{name} of {} keys", asks.multiget),
            (Command::Get | Command::Set | Command::Delete | Command::Increment, _) => {
                name.to_owned()
            }
        },
        // Repeating a set or a delete has no further effect.
        is_repeatable: command != Command::Increment,
        lists_outcomes: false,
    }
}
