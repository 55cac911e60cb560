//! Writes heads and chunk lines into the caller's buffer. The caller validates what it writes: names and values from
//! outside have passed a parser or [`is_field_value`](crate::is_field_value).

pub mod date;

use std::fmt::{self, Write};
use std::net::IpAddr;

use crate::status;
use crate::write::date::DATE_BYTES;

/// End of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Bytes after a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

/// Maximum length of a [`chunk_head`]: sixteen digits and CRLF.
pub const CHUNK_HEAD_BYTES_MAX: usize = 18;

/// Writes a head into a slice. It never panics: when the slice is full it writes no more, and
/// [`finish`](HeadWriter::finish) returns `None`.
pub struct HeadWriter<'a> {
    out: &'a mut [u8],
    /// Bytes written; <= `out.len()`.
    at: usize,
    overflowed: bool,
}

impl<'a> HeadWriter<'a> {
    /// Creates a writer at the start of `out`.
    #[inline]
    pub fn new(out: &'a mut [u8]) -> HeadWriter<'a> {
        HeadWriter {
            out,
            at: 0,
            overflowed: false,
        }
    }

    /// Status line of a response, with the registered reason phrase.
    #[inline]
    pub fn status_line(&mut self, status: u16) -> &mut Self {
        match status::line(status) {
            Some(line) => self.raw(line),
            None => self
                .raw(b"HTTP/1.1 ")
                .number(u64::from(status))
                .raw(b" \r\n"),
        }
    }

    /// Bytes as they are, such as fields rendered earlier.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        if let Some(room) = self.room(bytes.len()) {
            room.copy_from_slice(bytes);
            self.at += bytes.len();
        }
        self
    }

    /// Slice for the next `bytes` bytes; `None` if they, or earlier ones, do not fit.
    #[inline]
    fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let room = self.out.get_mut(self.at..self.at + bytes);
        self.overflowed |= room.is_none();
        room.filter(|_| !self.overflowed)
    }

    /// Field line.
    #[inline]
    pub fn header(&mut self, name: &str, value: &[u8]) -> &mut Self {
        let bytes = name.len() + value.len() + 4;
        let Some(room) = self.room(bytes) else {
            return self;
        };
        // One bounds check for all four parts: a head consists mainly of fields.
        let (name_room, rest) = room.split_at_mut(name.len());
        let (colon, rest) = rest.split_at_mut(2);
        let (value_room, end) = rest.split_at_mut(value.len());
        name_room.copy_from_slice(name.as_bytes());
        colon.copy_from_slice(b": ");
        value_room.copy_from_slice(value);
        end.copy_from_slice(b"\r\n");
        self.at += bytes;
        self
    }

    /// `Content-Length`.
    #[inline]
    pub fn content_length(&mut self, length: u64) -> &mut Self {
        self.raw(b"Content-Length: ").number(length).raw(b"\r\n")
    }

    /// `Date`, from [`date::format`].
    #[inline]
    pub fn date(&mut self, date: &[u8; DATE_BYTES]) -> &mut Self {
        self.raw(b"Date: ").raw(date).raw(b"\r\n")
    }

    /// `Transfer-Encoding: chunked`.
    #[inline]
    pub fn chunked(&mut self) -> &mut Self {
        self.raw(b"Transfer-Encoding: chunked\r\n")
    }

    /// `Connection: close`.
    #[inline]
    pub fn connection_close(&mut self) -> &mut Self {
        self.raw(b"Connection: close\r\n")
    }

    /// `Connection: keep-alive`, which HTTP/1.0 clients require.
    #[inline]
    pub fn keep_alive(&mut self) -> &mut Self {
        self.raw(b"Connection: keep-alive\r\n")
    }

    /// The empty line after the last field.
    #[inline]
    pub fn end(&mut self) -> &mut Self {
        self.raw(b"\r\n")
    }

    /// Number of bytes written; `None` if not everything fitted.
    #[inline]
    pub fn finish(&self) -> Option<usize> {
        (!self.overflowed).then_some(self.at)
    }

    /// Formatted value.
    pub fn display(&mut self, value: impl fmt::Display) -> &mut Self {
        if write!(FmtAdapter(self), "{value}").is_err() {
            self.overflowed = true;
        }
        self
    }

    /// IP address. IPv4, written into every forwarded request, avoids the standard library's formatting: 10 ns, not 70.
    pub fn address(&mut self, address: IpAddr) -> &mut Self {
        let IpAddr::V4(address) = address else {
            return self.display(address);
        };
        // "255.255.255.255", and the dot after each number.
        let mut text = [0; 16];
        let mut at = 0;
        for octet in address.octets() {
            let (number, bytes) = &OCTETS[usize::from(octet)];
            text[at..at + number.len()].copy_from_slice(number);
            at += bytes;
        }
        self.raw(&text[..at - 1])
    }

    #[inline]
    fn number(&mut self, number: u64) -> &mut Self {
        self.raw(itoa::Buffer::new().format(number).as_bytes())
    }
}

/// Text of each octet with a dot, and its length.
static OCTETS: [([u8; 4], usize); 256] = {
    let mut octets = [([0; 4], 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let mut at = (octet < 100) as usize + (octet < 10) as usize;
        let (text, bytes) = &mut octets[octet];
        while at < digits.len() {
            text[*bytes] = b'0' + digits[at] as u8;
            *bytes += 1;
            at += 1;
        }
        text[*bytes] = b'.';
        *bytes += 1;
        octet += 1;
    }
    octets
};

/// Adapts a writer to `fmt::Write`.
struct FmtAdapter<'w, 'a>(&'w mut HeadWriter<'a>);

impl Write for FmtAdapter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.raw(text.as_bytes());
        Ok(())
    }
}

/// Writes the line before a chunk of `size` bytes; `None` if it does not fit. To end a body use [`LAST_CHUNK`].
pub fn chunk_head(out: &mut [u8], size: u64) -> Option<usize> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (64 - (size | 1).leading_zeros() as usize).div_ceil(4);
    let line = out.get_mut(..digits + 2)?;
    for (at, digit) in line[..digits].iter_mut().rev().enumerate() {
        *digit = DIGITS[(size >> (4 * at) & 0xf) as usize];
    }
    line[digits..].copy_from_slice(b"\r\n");
    Some(digits + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_output_matches_display() {
        let octets = [0, 1, 9, 10, 42, 99, 100, 101, 199, 200, 250, 255];
        let v4 = octets.map(|octet| IpAddr::from([octet, 255 - octet, 10, octet]));
        let v6 = ["::1", "2001:db8::7", "::ffff:192.0.2.1"];
        let v6 = v6.map(|text| text.parse().expect("an address"));
        for address in v4.into_iter().chain(v6) {
            let mut out = [0; 64];
            let mut writer = HeadWriter::new(&mut out);
            let bytes = writer.address(address).finish().expect("room for it");
            assert_eq!(str::from_utf8(&out[..bytes]), Ok(&*address.to_string()));
        }
    }

    #[test]
    fn response_head_is_written() {
        let mut out = [0; 256];
        let mut head = HeadWriter::new(&mut out);
        head.status_line(200)
            .date(&crate::write::date::format(0))
            .content_length(12)
            .header("X-A", b"b")
            .end();
        let bytes = head.finish().expect("it fits in 256 bytes");
        let wanted = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 12\r\nX-A: b\r\n\r\n";
        assert_eq!(str::from_utf8(&out[..bytes]), Ok(wanted));
    }

    #[test]
    fn unknown_status_has_empty_reason_phrase() {
        let mut out = [0; 64];
        let bytes = HeadWriter::new(&mut out)
            .status_line(799)
            .finish()
            .expect("it fits in 64 bytes");
        assert_eq!(&out[..bytes], b"HTTP/1.1 799 \r\n");
    }

    #[test]
    fn overflow_is_reported_at_any_size() {
        let wanted = b"GET / HTTP/1.1\r\nA: b\r\nConnection: close\r\n\r\n";
        for room in 0..=wanted.len() {
            let mut out = vec![0; room];
            let mut head = HeadWriter::new(&mut out);
            head.raw(b"GET / HTTP/1.1\r\n")
                .header("A", b"b")
                .connection_close()
                .end();
            let expected = (room == wanted.len()).then_some(room);
            assert_eq!(head.finish(), expected);
        }
    }

    #[test]
    fn no_part_is_written_after_overflow() {
        let mut out = [0; 4];
        let mut head = HeadWriter::new(&mut out);
        assert_eq!(head.raw(b"too long").raw(b"a").finish(), None);
    }

    #[test]
    fn chunk_size_is_hexadecimal_without_leading_zeros() {
        for (size, text) in [
            (1u64, "1\r\n"),
            (15, "f\r\n"),
            (16, "10\r\n"),
            (4096, "1000\r\n"),
            (u64::MAX, "ffffffffffffffff\r\n"),
        ] {
            let mut out = [0; CHUNK_HEAD_BYTES_MAX];
            let bytes = chunk_head(&mut out, size).expect("it is the longest");
            assert_eq!(str::from_utf8(&out[..bytes]), Ok(text));
            assert_eq!(chunk_head(&mut out[..bytes - 1], size), None);
        }
    }
}
