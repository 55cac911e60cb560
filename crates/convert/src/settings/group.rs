//! Groups of servers (`[upstream.NAME]`). Two uses of a group with different settings become two groups.

use crate::document::{Section, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) comments: Vec<String>,
    /// Keys with values in the syntax of Onrush.
    pub(crate) keys: Vec<(String, Value)>,
}

impl Group {
    /// A group with these servers; the list must not be empty.
    pub(crate) fn of(comment: String, servers: Vec<Value>) -> Group {
        let servers = ("servers".to_owned(), Value::List(servers));
        Group {
            comments: vec![comment],
            keys: vec![servers],
        }
    }

    pub(crate) fn put(&mut self, key: &str, value: Value) {
        self.keys.retain(|(known, _)| known != key);
        self.keys.push((key.to_owned(), value));
    }
}

#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<(String, Group)>);

impl Groups {
    /// Returns the name of a group, and adds it unless it exists. The name is `wished` with invalid characters
    /// replaced, and with a number if another group has it.
    pub(crate) fn name(&mut self, wished: &str, group: Group) -> String {
        let letters = wished.chars().map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => letter,
            _ => '_',
        });
        let wished: String = letters.collect();
        let wished = match wished.is_empty() {
            true => "servers".to_owned(),
            false => wished,
        };
        let mut number = 1;
        loop {
            let name = match number {
                1 => wished.clone(),
                number => format!("{wished}_{number}"),
            };
            match self.0.iter().find(|(known, _)| *known == name) {
                None => {
                    self.0.push((name.clone(), group));
                    return name;
                }
                Some((_, known)) if *known == group => return name,
                Some(_) => number += 1,
            }
        }
    }

    pub(crate) fn written(&self) -> impl Iterator<Item = Section> {
        self.0.iter().map(|(name, group)| {
            let mut section = Section::upstream(name);
            section.comments = group.comments.clone();
            for (key, value) in &group.keys {
                section.put(key, value.clone());
            }
            section
        })
    }
}

/// An entry of `servers`: only the address if there are no keys.
pub(crate) fn server(address: &str, keys: Vec<(&str, Value)>) -> Value {
    if keys.is_empty() {
        return Value::text(address);
    }
    let address = ("address", Value::text(address));
    let keys = std::iter::once(address).chain(keys);
    Value::Table(keys.map(|(key, value)| (key.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_upstreams_share_a_name() {
        let of = |address: &str| Group::of("c".to_owned(), vec![server(address, vec![])]);
        let mut groups = Groups::default();
        assert_eq!(groups.name("app", of("a:1")), "app");
        assert_eq!(groups.name("app", of("a:1")), "app");
        assert_eq!(groups.name("app", of("b:1")), "app_2");
        assert_eq!(groups.name("10.0.0.1:80", of("b:1")), "10_0_0_1_80");
        assert_eq!(groups.name("", of("b:1")), "servers");
        assert_eq!(groups.written().count(), 4);
    }
}
