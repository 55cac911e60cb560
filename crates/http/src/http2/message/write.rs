//! Fields of messages as parts of header blocks. Names of any case become lower case (RFC 9113 8.2.1).

use crate::http2::hpack::Encoder;

/// Longer than known names.
const NAME_BYTES_USUAL: usize = 64;

/// Appends one field, whose name may be of any case, indexed as [`Encoder::field_with_default_indexing`] does it.
#[inline]
pub fn field(name: &str, value: &[u8], encoder: &mut Encoder, out: &mut Vec<u8>) {
    let name = name.as_bytes();
    let mut room = [0; NAME_BYTES_USUAL];
    match room.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            encoder.field_with_default_indexing(lower, value, out);
        }
        None => encoder.field_with_default_indexing(&name.to_ascii_lowercase(), value, out),
    }
}
