//! A streaming encoder for any content coding: encodes input into the caller's buffer.

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{
    BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct,
};
use flate2::{Compress, Compression, FlushCompress, Status};
use onrush_http::encoding::Coding;
use zstd::stream::raw::{CParameter, InBuffer, Operation, OutBuffer};

use crate::worker::compress::level;

/// Encoder state of one content. [`crate::worker::compress::level`] has its memory use.
pub struct Encoder {
    coding: Coding,
    level: u32,
    codec: Codec,
    /// Whether there was input since the last flush. Otherwise a flush is skipped, because the codec would write an
    /// empty block.
    has_unflushed: bool,
}

enum Codec {
    Gzip(Compress),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
    Zstd(zstd::stream::raw::Encoder<'static>),
}

/// Kind of input that follows the pushed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// More bytes: the encoder may buffer output.
    More,
    /// A pause: the output must allow decoding of all bytes so far.
    Flush,
    /// The end of the content.
    Finish,
}

/// Result of one push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pushed {
    /// Number of bytes of input consumed.
    pub consumed: usize,
    /// Number of bytes written to the output.
    pub written: usize,
    /// Whether all input is consumed and the requested output is written. Otherwise the output was too small: push the
    /// rest of the input again, with the same `Then`.
    pub is_done: bool,
}

/// Window of gzip, its maximum: 32 KiB.
const GZIP_WINDOW_BITS: u8 = 15;

/// Window of Brotli and zstd: 128 KiB. Larger than most compressible content, and small enough for hundreds of slow
/// clients. The maximum would be 16 and 8 MiB (RFC 7932 9.1, RFC 9659).
const WINDOW_BITS: u32 = 17;

/// Minimum output space for a flush. gzip's flush marker has six bytes; if it exactly fills the output, the end cannot
/// be detected, and each push would write another marker (zlib.h, deflate).
const FLUSH_ROOM_MIN: usize = 7;

impl Encoder {
    /// An encoder at a level of the coding's own scale: 1 to 9 for gzip, 0 to 11 for Brotli, 1 to 19 for zstd.
    pub fn new(coding: Coding, level: u32) -> Self {
        let codec = match coding {
            Coding::Gzip => Codec::Gzip(Compress::new_gzip(
                Compression::new(level),
                GZIP_WINDOW_BITS,
            )),
            Coding::Brotli => Codec::Brotli(brotli(level)),
            Coding::Zstd => Codec::Zstd(zstd(level)),
        };
        Self {
            coding,
            level,
            codec,
            has_unflushed: false,
        }
    }

    /// The coding.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Whether a reset encoder is cheaper than a new one.
    pub(crate) fn keeps_memory(&self) -> bool {
        match self.codec {
            Codec::Gzip(_) | Codec::Zstd(_) => true,
            // Its tables would have to be cleared anyway, and its buffers are freed after each content.
            Codec::Brotli(_) => false,
        }
    }

    /// Prepares it for another content, even if the last one was not finished.
    pub fn reset(&mut self) {
        self.has_unflushed = false;
        match &mut self.codec {
            Codec::Gzip(gzip) => gzip.reset(),
            Codec::Brotli(state) => *state = brotli(self.level),
            Codec::Zstd(zstd) => zstd
                .reinit()
                .expect("a session can be reset at any time (ZSTD_reset_session_only)"),
        }
    }

    /// Encodes bytes of `input` into `out`, which must not be empty, and have at least seven bytes for a flush.
    pub fn push(&mut self, input: &[u8], then: Then, out: &mut [u8]) -> Pushed {
        debug_assert!(!out.is_empty());
        debug_assert!(then != Then::Flush || out.len() >= FLUSH_ROOM_MIN);
        self.has_unflushed |= !input.is_empty();
        if !self.has_unflushed && then != Then::Finish {
            return Pushed {
                consumed: 0,
                written: 0,
                is_done: true,
            };
        }
        let pushed = match &mut self.codec {
            Codec::Gzip(gzip) => push_gzip(gzip, input, then, out),
            Codec::Brotli(state) => push_brotli(state, input, then, out),
            Codec::Zstd(zstd) => push_zstd(zstd, input, then, out),
        };
        if pushed.is_done && then != Then::More {
            self.has_unflushed = false;
        }
        pushed
    }
}

fn push_gzip(gzip: &mut Compress, input: &[u8], then: Then, out: &mut [u8]) -> Pushed {
    let flush = match then {
        Then::More => FlushCompress::None,
        Then::Flush => FlushCompress::Sync,
        Then::Finish => FlushCompress::Finish,
    };
    let (total_in, total_out) = (gzip.total_in(), gzip.total_out());
    let status = gzip
        .compress(input, out, flush)
        .expect("it is not used beyond its end");
    let consumed = (gzip.total_in() - total_in) as usize;
    let written = (gzip.total_out() - total_out) as usize;
    let is_done = match then {
        Then::More => consumed == input.len(),
        // Unused space means that all output was written.
        Then::Flush => consumed == input.len() && written < out.len(),
        Then::Finish => status == Status::StreamEnd,
    };
    Pushed {
        consumed,
        written,
        is_done,
    }
}

fn brotli(quality: u32) -> Box<BrotliEncoderStateStruct<StandardAlloc>> {
    use BrotliEncoderParameter::{
        BROTLI_PARAM_LGWIN, BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT,
    };
    let mut state = Box::new(BrotliEncoderStateStruct::new(StandardAlloc::default()));
    for (parameter, value) in [
        (BROTLI_PARAM_QUALITY, quality),
        (BROTLI_PARAM_LGWIN, WINDOW_BITS),
        // Larger hints select larger tables.
        (BROTLI_PARAM_SIZE_HINT, 1 << WINDOW_BITS),
    ] {
        let is_set = state.set_parameter(parameter, value);
        debug_assert!(is_set);
    }
    state
}

fn push_brotli(
    state: &mut BrotliEncoderStateStruct<StandardAlloc>,
    input: &[u8],
    then: Then,
    out: &mut [u8],
) -> Pushed {
    let operation = match then {
        Then::More => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        Then::Flush => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
        Then::Finish => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
    };
    let (mut available_in, mut consumed) = (input.len(), 0);
    let (mut available_out, mut written) = (out.len(), 0);
    let succeeded = state.compress_stream(
        operation,
        &mut available_in,
        input,
        &mut consumed,
        &mut available_out,
        out,
        &mut written,
        &mut None,
        &mut |_, _, _, _| (),
    );
    assert!(succeeded, "it is not used beyond its end");
    let is_done = match then {
        Then::More | Then::Flush => available_in == 0 && !state.has_more_output(),
        Then::Finish => state.is_finished(),
    };
    Pushed {
        consumed,
        written,
        is_done,
    }
}

fn zstd(level: u32) -> zstd::stream::raw::Encoder<'static> {
    const KNOWN: &str = "the parameter and its value are within what zstd 1.4 and later know";
    let mut zstd = zstd::stream::raw::Encoder::new(level as i32).expect(KNOWN);
    let window = CParameter::WindowLog(WINDOW_BITS);
    zstd.set_parameter(window).expect(KNOWN);
    zstd
}

fn push_zstd(
    zstd: &mut zstd::stream::raw::Encoder<'_>,
    input: &[u8],
    then: Then,
    out: &mut [u8],
) -> Pushed {
    const MEMORY: &str = "out of memory is the only error there is";
    let mut from = InBuffer::around(input);
    let mut to = OutBuffer::around(out);
    while from.pos() < input.len() && to.pos() < to.capacity() {
        zstd.run(&mut from, &mut to).expect(MEMORY);
    }
    let consumed = from.pos();
    let mut is_done = consumed == input.len();
    if is_done && then != Then::More && to.pos() < to.capacity() {
        let left = match then {
            Then::Finish => zstd.finish(&mut to, true),
            Then::Flush | Then::More => zstd.flush(&mut to),
        };
        is_done = left.expect(MEMORY) == 0;
    } else {
        is_done &= then == Then::More;
    }
    Pushed {
        consumed,
        written: to.pos(),
        is_done,
    }
}

/// Encodes `content` once for many responses; `None` if the result is not shorter.
pub(crate) fn encode_whole(coding: Coding, content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(coding, level::cached(coding));
    let mut encoded = vec![0; content.len()];
    let (mut rest, mut filled) = (content, 0);
    while filled < encoded.len() {
        let pushed = encoder.push(rest, Then::Finish, &mut encoded[filled..]);
        rest = &rest[pushed.consumed..];
        filled += pushed.written;
        if pushed.is_done {
            encoded.truncate(filled);
            return (filled < content.len()).then_some(encoded);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::worker::compress::decode::{decode, decode_prefix};
    use crate::worker::compress::level;

    const CODINGS: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    /// Pushes all of `input` with an output of `room` bytes at a time.
    fn push_all(encoder: &mut Encoder, mut input: &[u8], then: Then, room: usize) -> Vec<u8> {
        let mut encoded = Vec::new();
        let mut out = vec![0; room];
        loop {
            let pushed = encoder.push(input, then, &mut out);
            encoded.extend_from_slice(&out[..pushed.written]);
            input = &input[pushed.consumed..];
            if pushed.is_done {
                assert!(input.is_empty());
                return encoded;
            }
            assert!(pushed.consumed + pushed.written > 0, "{pushed:?}");
        }
    }

    fn text(bytes: usize) -> Vec<u8> {
        let mut text = Vec::new();
        for number in 0.. {
            if text.len() >= bytes {
                text.truncate(bytes);
                break;
            }
            text.extend_from_slice(format!("line {number} of {}, ", number * 7919).as_bytes());
        }
        text
    }

    #[test]
    fn round_trip_at_every_level_and_size() {
        let levels = [
            (Coding::Gzip, 1..=9),
            (Coding::Brotli, 0..=9),
            (Coding::Zstd, 1..=12),
        ];
        for (coding, levels) in levels {
            for level in levels {
                for bytes in [0, 1, 100, 65_536, 300_000] {
                    let content = text(bytes);
                    let mut encoder = Encoder::new(coding, level);
                    let encoded = push_all(&mut encoder, &content, Then::Finish, 16 * 1024);
                    assert!(
                        decode(coding, &encoded) == content,
                        "{coding:?} {level} {bytes}"
                    );
                }
            }
        }
    }

    #[test]
    fn flushed_output_is_decodable() {
        for coding in CODINGS {
            let mut encoder = Encoder::new(coding, level::streaming(coding));
            let (mut content, mut encoded) = (Vec::new(), Vec::new());
            for number in 0..50 {
                let event = format!("data: {number}\n\n").repeat(number);
                content.extend_from_slice(event.as_bytes());
                encoded.extend(push_all(&mut encoder, event.as_bytes(), Then::More, 100));
                encoded.extend(push_all(&mut encoder, b"", Then::Flush, 7));
                let mut decoded = Vec::new();
                let unfinished = decode_prefix(coding, &encoded, &mut decoded);
                assert!(unfinished.is_err(), "{coding:?} has not come to its end");
                assert!(decoded == content, "{coding:?} {number}");
            }
        }
    }

    #[test]
    fn flush_without_input_writes_nothing() {
        for coding in CODINGS {
            let mut encoder = Encoder::new(coding, level::streaming(coding));
            assert!(push_all(&mut encoder, b"", Then::Flush, 100).is_empty());
            assert!(!push_all(&mut encoder, b"x", Then::Flush, 100).is_empty());
            assert!(push_all(&mut encoder, b"", Then::Flush, 100).is_empty());
        }
    }

    #[test]
    fn encoder_reset_discards_pending_output() {
        for coding in CODINGS {
            let content = text(100_000);
            let mut encoder = Encoder::new(coding, level::streaming(coding));
            let first = push_all(&mut encoder, &content, Then::Finish, 1000);
            encoder.reset();
            push_all(&mut encoder, &content[..70_000], Then::More, 1000);
            encoder.push(&content, Then::Flush, &mut [0; 10]);
            encoder.reset();
            let again = push_all(&mut encoder, &content, Then::Finish, 1000);
            assert!(again == first, "{coding:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn round_trip_with_arbitrary_chunks_and_flushes(
            pieces in vec((vec(any::<u8>(), 0..50), 0..5000usize, prop::bool::ANY), 0..12),
            room in FLUSH_ROOM_MIN..5000usize,
        ) {
            for coding in CODINGS {
                let mut encoder = Encoder::new(coding, level::streaming(coding));
                let (mut content, mut encoded) = (Vec::new(), Vec::new());
                for (noise, bytes, flushes) in &pieces {
                    let piece = [noise.clone(), text(*bytes)].concat();
                    let then = if *flushes { Then::Flush } else { Then::More };
                    encoded.extend(push_all(&mut encoder, &piece, then, room));
                    content.extend(piece);
                }
                encoded.extend(push_all(&mut encoder, b"", Then::Finish, room));
                prop_assert!(decode(coding, &encoded) == content, "{coding:?}");
            }
        }
    }
}
