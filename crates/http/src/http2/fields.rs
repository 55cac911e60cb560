//! Fields of one decoded header block, in memory reused for each block.

pub use super::flaw::FieldError;
use super::flaw::{validate_name, value_of};
use super::hpack::sensitivity::Sensitivity;
use super::hpack::static_table::{Entry, Known, Name};
use super::limits::FIELDS_KEPT_MAX;

/// Overhead of a field in the size of a section (RFC 9113 6.5.2).
const FIELD_OVERHEAD: u64 = 32;

/// A decoded field section (RFC 9113 8.2). It is refilled for each block and allocates only to grow.
///
/// Malformed and excess fields are reported but not stored. Cookies are joined into one field (RFC 9113 8.2.3).
#[derive(Default)]
pub struct FieldSection {
    /// Names that are not in the static table, concatenated.
    names: String,
    /// All values, concatenated.
    values: Vec<u8>,
    fields: Vec<Field>,
    list_bytes: u64,
    list_bytes_max: u32,
    cookies: u32,
    flaw: Option<FieldError>,
    excess: u32,
    sensitivity: Sensitivity,
}

/// Ranges of a field's name and value.
#[derive(Clone, Copy)]
struct Field {
    known: Option<Known>,
    /// Entry of the static table that contains the value.
    entry: Option<Entry>,
    name_start: u32,
    name_end: u32,
    value_start: u32,
    value_end: u32,
}

impl FieldSection {
    /// Removes all fields.
    pub fn clear(&mut self) {
        self.begin(0);
    }

    #[inline]
    pub(crate) fn copy_from(&mut self, other: &FieldSection) {
        let FieldSection {
            names,
            values,
            fields,
            list_bytes,
            list_bytes_max,
            cookies,
            flaw,
            excess,
            sensitivity,
        } = self;
        names.clone_from(&other.names);
        values.clone_from(&other.values);
        fields.clone_from(&other.fields);
        *list_bytes = other.list_bytes;
        *list_bytes_max = other.list_bytes_max;
        *cookies = other.cookies;
        *flaw = other.flaw;
        *excess = other.excess;
        *sensitivity = other.sensitivity;
    }

    /// Bytes of the names and values stored here.
    #[inline]
    pub(crate) fn text_bytes(&self) -> usize {
        self.names.len() + self.values.len()
    }

    /// Capacity for names and values in bytes.
    pub fn room_bytes(&self) -> usize {
        self.names.capacity() + self.values.capacity()
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the section is empty.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Names and values in the order received. A name is a token in lower case, with a leading colon for a
    /// pseudo-field; a value is valid to send.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries().map(|(_, name, value)| (name, value))
    }

    /// Fields with names of the static table identified.
    #[inline]
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Option<Known>, &str, &[u8])> {
        self.entries_from(0)
    }

    /// [`FieldSection::entries`] after the first `skipped`, which must exist.
    #[inline]
    pub(crate) fn entries_from(
        &self,
        skipped: usize,
    ) -> impl Iterator<Item = (Option<Known>, &str, &[u8])> {
        self.fields[skipped..].iter().map(|field| {
            let name = match field.known {
                Some(known) => known.text(),
                None => &self.names[field.name_start as usize..field.name_end as usize],
            };
            let value = match field.entry {
                Some(entry) => entry.value().as_bytes(),
                None => &self.values[field.value_start as usize..field.value_end as usize],
            };
            (field.known, name, value)
        })
    }

    /// Whether the sender marked fields as never indexed.
    #[inline]
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    #[inline]
    pub(crate) fn set_sensitivity(&mut self, sensitivity: Sensitivity) {
        self.sensitivity = sensitivity;
    }

    /// Size of all fields received, stored or not: names, values and 32 for each (RFC 9113 6.5.2).
    pub fn list_bytes(&self) -> u64 {
        self.list_bytes
    }

    /// Whether the size exceeds the limit, or the number [`FIELDS_KEPT_MAX`]. Excess fields are not stored.
    #[inline]
    pub fn is_too_large(&self) -> bool {
        self.list_bytes > u64::from(self.list_bytes_max) || self.is_full()
    }

    /// Unproductive work caused by the sender: one for each field not stored, except for the first malformed one, and
    /// one for each KiB of names copied from the table.
    #[inline]
    pub(crate) fn excess(&self) -> u32 {
        self.excess
    }

    /// Adds to [`FieldSection::excess`].
    #[inline]
    pub(crate) fn add_excess(&mut self, units: u32) {
        self.excess += units;
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.fields.len() > FIELDS_KEPT_MAX
    }

    /// Flaw of the first malformed field. That field is not stored; later ones are.
    #[inline]
    pub fn flaw(&self) -> Option<FieldError> {
        self.flaw
    }

    /// Removes all fields and sets the size limit for the next ones.
    #[inline]
    pub(crate) fn begin(&mut self, list_bytes_max: u32) {
        self.names.clear();
        self.values.clear();
        self.fields.clear();
        self.list_bytes = 0;
        // Positions are 32 bits wide, and joining cookies may write values twice.
        self.list_bytes_max = list_bytes_max.min(u32::MAX / 2);
        self.cookies = 0;
        self.flaw = None;
        self.excess = 0;
        self.sensitivity = Sensitivity::Unmarked;
    }

    /// Adds a field and the result of [`validate`](super::flaw::validate) for it.
    #[inline]
    pub(crate) fn push(&mut self, name: Name<'_>, value: &[u8], flaw: Option<FieldError>) {
        self.list_bytes += name.bytes() as u64 + value.len() as u64 + FIELD_OVERHEAD;
        if flaw.is_some() {
            self.excess += u32::from(self.flaw.is_some());
            self.flaw = self.flaw.or(flaw);
            return;
        }
        if self.is_too_large() {
            self.excess += 1;
            return;
        }
        let value = value_of(name, value);
        // Below list_bytes_max, so it fits 32 bits, like all positions here.
        let name_start = self.names.len() as u32;
        let known = match name {
            Name::Known(known) => {
                self.cookies += u32::from(known == Known::COOKIE);
                Some(known)
            }
            Name::Other(text) => {
                let text = str::from_utf8(text).expect("a token is ASCII");
                self.names.push_str(text);
                None
            }
        };
        let value_start = self.values.len() as u32;
        self.values.extend_from_slice(value);
        self.fields.push(Field {
            known,
            entry: None,
            name_start,
            name_end: self.names.len() as u32,
            value_start,
            value_end: self.values.len() as u32,
        });
    }

    #[inline]
    pub(crate) fn push_entry(&mut self, entry: Entry) {
        let known = entry.name();
        let flaw = validate_name(Name::Known(known));
        // Empty values are stored as usual, because a cookie's would be joined.
        if entry.value().is_empty() || flaw.is_some() {
            return self.push(Name::Known(known), b"", flaw);
        }
        let bytes = known.text().len() + entry.value().len();
        self.list_bytes += bytes as u64 + FIELD_OVERHEAD;
        if self.is_too_large() {
            self.excess += 1;
            return;
        }
        self.fields.push(Field {
            known: Some(known),
            entry: Some(entry),
            name_start: 0,
            name_end: 0,
            value_start: 0,
            value_end: 0,
        });
    }

    /// Reports the end of the block.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.cookies > 1 {
            self.join_cookies();
        }
    }

    #[inline]
    pub(crate) fn is_connect(&self) -> bool {
        let mut fields = self.entries();
        let method = fields.find(|(known, _, _)| *known == Some(Known::METHOD));
        method.is_some_and(|(_, _, value)| value == b"CONNECT")
    }

    /// Replaces the method by GET and removes `:protocol` and the WebSocket key.
    #[cold]
    pub(crate) fn become_get(&mut self) {
        let names = &self.names;
        self.fields.retain(|field| {
            let name = &names[field.name_start as usize..field.name_end as usize];
            field.known.is_some() || !matches!(name, ":protocol" | "sec-websocket-key")
        });
        for field in &mut self.fields {
            if field.known == Some(Known::METHOD) {
                field.entry = Some(Entry::METHOD_GET);
            }
        }
    }

    /// Joins all cookie fields into one at the position of the first (RFC 9113 8.2.3).
    #[cold]
    fn join_cookies(&mut self) {
        let joined_start = self.values.len();
        let mut first = None;
        for at in 0..self.fields.len() {
            let field = self.fields[at];
            if field.known != Some(Known::COOKIE) {
                continue;
            }
            first = first.or(Some(at));
            // Joining an empty value would leave white space at an end.
            let is_between =
                field.value_start < field.value_end && self.values.len() > joined_start;
            if is_between {
                self.values.extend_from_slice(b"; ");
            }
            self.values
                .extend_from_within(field.value_start as usize..field.value_end as usize);
        }
        let Some(first) = first else {
            return;
        };
        let mut at = 0;
        self.fields.retain(|field| {
            at += 1;
            field.known != Some(Known::COOKIE) || at == first + 1
        });
        let field = &mut self.fields[first];
        field.value_start = joined_start as u32;
        field.value_end = self.values.len() as u32;
    }
}

impl std::fmt::Debug for FieldSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = self.iter();
        f.debug_map()
            .entries(fields.map(|(name, value)| (name, value.escape_ascii().to_string())))
            .finish()
    }
}
