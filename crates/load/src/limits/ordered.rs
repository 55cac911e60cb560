//! Serializes lists of pairs as JSON maps in the order of the list. Maps with numeric keys would be sorted as strings
//! otherwise.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<V: Serialize, S: Serializer>(
    list: &[(String, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(list.iter().map(|(key, value)| (key, value)))
}

/// Reads a map in the order in which it was written.
pub(crate) fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, V)>, D::Error> {
    struct Pairs<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
        type Value = Vec<(String, V)>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut list = Vec::new();
            while let Some(pair) = map.next_entry()? {
                list.push(pair);
            }
            Ok(list)
        }
    }

    deserializer.deserialize_map(Pairs(PhantomData))
}
