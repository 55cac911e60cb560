//! Checks of memcached responses in pieces of any size, for tests and the fuzzer.

use std::sync::Arc;

use onrush_packet::memcached::Frame;

use super::assembly::{Added, Assembly, Messages};
use super::{Codec, OUTCOMES};
use crate::requests::memcached::keys::Distribution;
use crate::requests::memcached::ratio::Ratio;
use crate::requests::memcached::sizes::LengthDistribution;
use crate::requests::memcached::workload::Workload;
use crate::requests::memcached::{Dialect, MemcachedOptions, Verify};
use crate::requests::response::{ExpectationResult, Response, Step};

/// Creates a codec for one connection with sequential keys of five bytes and values of four.
pub(super) fn codec(change: impl FnOnce(&mut MemcachedOptions)) -> Codec {
    let mut asks = MemcachedOptions {
        keys: 100,
        key_sizes: LengthDistribution::Fixed(5),
        value_sizes: LengthDistribution::Fixed(4),
        distribution: Distribution::Sequential,
        ..MemcachedOptions::default()
    };
    change(&mut asks);
    let workload = Workload::new(&asks, 0).expect("the asks are right");
    Codec::new(&Arc::new(workload), 1)
}

/// Returns the outcomes of `count` requests sent at once, if the server sends `text` and each receive returns `piece`
/// bytes. An unexpected outcome ends with an exclamation mark; the last entry may be the reason why the rest is
/// invalid.
pub(super) fn outcomes_in_pieces(
    codec: &Codec,
    count: u64,
    text: &[u8],
    piece: usize,
) -> Vec<String> {
    codec.ends[0].set(count);
    let (mut all, mut end, mut at) = (Vec::new(), 0, 0);
    let name_of = |response: Response| {
        let name = (OUTCOMES.name)(response.outcome.number);
        match response.expectation {
            ExpectationResult::Yes => name,
            ExpectationResult::OtherOutcome | ExpectationResult::OtherBody => format!("{name}!"),
        }
    };
    let mut number = 0;
    while number < count {
        // As a connection does: complete ordinary responses are taken at once.
        if let Some(alike) = codec.take(0, (number, count - number), &text[at..end]) {
            at += alike.bytes;
            number += alike.count;
            all.extend((0..alike.count).map(|_| name_of(alike.response)));
            continue;
        }
        let mut incoming = codec.incoming(0, number);
        number += 1;
        loop {
            let (bytes, step) = incoming.step(&text[at..end]);
            at += bytes;
            match step {
                Step::Done(response) => {
                    all.push(name_of(response));
                    break;
                }
                Step::Refused(reason) => {
                    all.push(reason.to_owned());
                    return all;
                }
                Step::Partial(_) if end == text.len() => {
                    all.push("partial".to_owned());
                    return all;
                }
                Step::Partial(_) => end = (end + piece).min(text.len()),
            }
        }
    }
    if at < text.len() {
        all.push(format!("{} bytes behind", text.len() - at));
    }
    all
}

/// Reassembles datagrams in any order and with duplicates: they must form the response and release all room. The first
/// byte is the number of parts; each further byte chooses the next part.
pub(crate) fn any_datagrams(input: &[u8]) {
    let Some((count, order)) = input.split_first() else {
        return;
    };
    let datagrams = u16::from(count % 40) + 1;
    let part = |sequence: u16| vec![sequence as u8; usize::from(sequence % 7)];
    let room_before = 1 + usize::from(*count);
    let (mut room, mut answer, mut assembly) = (room_before, Vec::new(), Assembly::new());
    assembly.begin(Messages::One, &mut room);
    // At the end every part is sent again, since some may have had no room.
    let order = order
        .iter()
        .map(|sequence| u16::from(*sequence) % datagrams);
    for sequence in order.chain(0..datagrams) {
        let frame = Frame {
            id: 1,
            sequence,
            datagrams,
        };
        let placed = assembly.add(frame, &part(sequence), &mut answer, &mut room);
        assert!(room <= room_before);
        assert_ne!(placed, Added::WrongSequence);
    }
    assert!(assembly.is_whole() && room == room_before);
    let expected: Vec<u8> = (0..datagrams).flat_map(part).collect();
    assert_eq!(answer, expected);
}

/// Adds any frames to a response of several messages: it must not have more bytes than arrived, and must release all
/// room. Each datagram is preceded by its length in one byte.
pub(crate) fn any_frames(input: &[u8]) {
    const ROOM: usize = 200;
    let (mut room, mut answer, mut assembly) = (ROOM, Vec::new(), Assembly::new());
    assembly.begin(Messages::Several, &mut room);
    let (mut rest, mut came) = (input, 0);
    while let Some((length, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        if let Ok((frame, payload)) = Frame::read(datagram) {
            came += payload.len();
            assembly.add(frame, payload, &mut answer, &mut room);
        }
        assert!(room <= ROOM && answer.len() + (ROOM - room) <= came);
    }
    assembly.begin(Messages::One, &mut room);
    assert_eq!(room, ROOM);
}

/// Parses any response of a server: the outcomes must not depend on the pieces, and counters must not exceed the
/// requests. The first byte chooses the workload.
pub(crate) fn any(input: &[u8]) {
    let Some((choice, text)) = input.split_first() else {
        return;
    };
    let change = |asks: &mut MemcachedOptions| {
        asks.dialect = match choice % 3 {
            0 => Dialect::Text,
            1 => Dialect::Meta,
            _ => Dialect::MetaQuiet,
        };
        let ratio = ["1", "0:1", "0:0:1", "0:0:0:1", "2:2:1:1"][usize::from(choice / 3 % 5)];
        asks.ratio = Ratio::parse(ratio).expect("it is one");
        asks.verify = match choice / 15 % 2 {
            0 => Verify::No,
            _ => Verify::Yes,
        };
        asks.multiget = u64::from(choice / 30 % 4) + 1;
        asks.key_sizes = LengthDistribution::Fixed(if *choice < 120 { 5 } else { 9 });
    };
    const COUNT: u64 = 3;
    let whole = codec(change);
    let expected = outcomes_in_pieces(&whole, COUNT, text, text.len().max(1));
    for piece in [1, 2, 7, 64] {
        let pieces = codec(change);
        assert_eq!(outcomes_in_pieces(&pieces, COUNT, text, piece), expected);
        assert_eq!(pieces.counts(), whole.counts(), "in pieces of {piece}");
    }
    let counts = whole.counts();
    let answers = counts.gets + counts.sets + counts.deletes + counts.increments;
    assert!(answers <= COUNT);
    assert!(counts.hits + counts.misses <= counts.keys_asked);
    assert!(counts.wrong_values <= counts.hits);
}
