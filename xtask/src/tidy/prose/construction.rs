//! A construction that reads as translated, and the table of them, `constructions.toml`.

use std::sync::LazyLock;

use regex::Regex;
use toml::{Table, Value};

/// Phrases of one kind, with their exceptions.
pub(super) struct Construction {
    pub(super) name: String,
    phrases: Regex,
    /// Matched from the first letter of a phrase to the end of the line; a phrase that matches is not marked.
    allowed: Option<Regex>,
}

/// All constructions, in the order of the table.
pub(super) static CONSTRUCTIONS: LazyLock<Vec<Construction>> = LazyLock::new(|| {
    let tables = tables();
    tables.iter().map(Construction::new).collect()
});

fn tables() -> Vec<Table> {
    let table: Table = include_str!("constructions.toml")
        .parse()
        .expect("constructions.toml is TOML, as the tests of this file check");
    let constructions = table["construction"].as_array();
    let constructions = constructions.expect("an array of tables");
    let tables = constructions.iter().filter_map(Value::as_table);
    tables.cloned().collect()
}

impl Construction {
    fn new(table: &Table) -> Construction {
        let phrases = strings(table, "phrases").join("|");
        let phrases = match table["position"].as_str() {
            Some("start") => format!(r"^(?:{phrases})\b"),
            Some("anywhere") => format!(r"(?i)\b(?:{phrases})\b"),
            position => panic!("position {position:?} in constructions.toml"),
        };
        let allowed = strings(table, "allowed").join("|");
        let allowed = (!allowed.is_empty()).then(|| regex(&format!("(?i)^(?:{allowed})")));
        Construction {
            name: table["name"].as_str().expect("a string").to_owned(),
            phrases: regex(&phrases),
            allowed,
        }
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.phrases.find_iter(text).any(|phrase| {
            let allowed = self.allowed.as_ref();
            !allowed.is_some_and(|allowed| allowed.is_match(&text[phrase.start()..]))
        })
    }
}

/// Strings of an array; none if there is no such key.
fn strings<'table>(table: &'table Table, key: &str) -> Vec<&'table str> {
    let array = table.get(key).and_then(Value::as_array);
    array
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("patterns of constructions.toml are valid, as the tests check")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the constructions in a line.
    fn names(text: &str) -> Vec<&str> {
        let found = CONSTRUCTIONS.iter().filter(|known| known.is_in(text));
        found.map(|known| known.name.as_str()).collect()
    }

    #[test]
    fn marked_samples_match_their_construction() {
        for table in tables() {
            let samples = strings(&table, "marked");
            assert!(!samples.is_empty(), "no samples in {table}");
            for sample in samples {
                let name = table["name"].as_str().expect("a string");
                assert_eq!(names(sample), [name], "in {sample:?}");
            }
        }
    }

    #[test]
    fn plain_samples_are_not_marked() {
        for table in tables() {
            let samples = strings(&table, "unmarked");
            assert!(!samples.is_empty(), "no samples in {table}");
            for sample in samples {
                assert_eq!(names(sample), [""; 0], "in {sample:?}");
            }
        }
    }

    #[test]
    fn phrase_after_allowed_phrase_is_marked() {
        let text = "behind a proxy, and behind the body";
        assert_eq!(names(text), ["'behind' for after"]);
    }

    #[test]
    fn table_keys_are_known() {
        let known = [
            "name", "position", "phrases", "allowed", "marked", "unmarked",
        ];
        for table in tables() {
            let unknown: Vec<&String> = table
                .keys()
                .filter(|key| !known.contains(&key.as_str()))
                .collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }
}
