//! What answers come to in pieces of any size, for tests and for the fuzzer.

use std::sync::Arc;

use onrush_packet::memcached::Frame;

use super::assembly::{Assembly, Messages, Placed};
use super::{Codec, OUTCOMES};
use crate::requests::memcached::keys::Distribution;
use crate::requests::memcached::ratio::Ratio;
use crate::requests::memcached::sizes::Sizes;
use crate::requests::memcached::workload::Workload;
use crate::requests::memcached::{Asks, Dialect, Verify};
use crate::requests::response::{Met, Response, Step};

/// One connection that asks for keys of five bytes in their order, with values of four bytes.
pub(super) fn codec(change: impl FnOnce(&mut Asks)) -> Codec {
    let mut asks = Asks {
        keys: 100,
        key_sizes: Sizes::Fixed(5),
        value_sizes: Sizes::Fixed(4),
        distribution: Distribution::Sequential,
        ..Asks::default()
    };
    change(&mut asks);
    let workload = Workload::new(&asks, 0).expect("the asks are right");
    Codec::new(&Arc::new(workload), 1)
}

/// What so many requests that are sent at once come to, when a server says `text` and each receive brings `piece` bytes. An
/// exclamation mark stands behind what should not be; the last may be why the rest is no answer.
pub(super) fn said_in_pieces(codec: &Codec, count: u64, text: &[u8], piece: usize) -> Vec<String> {
    codec.ends[0].set(count);
    let (mut all, mut end, mut at) = (Vec::new(), 0, 0);
    let name_of = |response: Response| {
        let name = (OUTCOMES.name)(response.outcome.number);
        match response.met {
            Met::Yes => name,
            Met::OtherOutcome | Met::OtherBody => format!("{name}!"),
        }
    };
    let mut number = 0;
    while number < count {
        // As a connection does it: what is whole and usual is taken at once.
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

/// Datagrams in any order and any number make the answer that they are parts of, and none takes room for good. The first byte says
/// how many parts there are, and of the rest each names the part that comes next.
pub(crate) fn any_datagrams(input: &[u8]) {
    let Some((count, order)) = input.split_first() else {
        return;
    };
    let datagrams = u16::from(count % 40) + 1;
    let part = |sequence: u16| vec![sequence as u8; usize::from(sequence % 7)];
    let room_before = 1 + usize::from(*count);
    let (mut room, mut answer, mut assembly) = (room_before, Vec::new(), Assembly::new());
    assembly.begin(Messages::One, &mut room);
    // Whoever had no room comes again.
    let order = order
        .iter()
        .map(|sequence| u16::from(*sequence) % datagrams);
    for sequence in order.chain(0..datagrams) {
        let frame = Frame {
            id: 1,
            sequence,
            datagrams,
        };
        let placed = assembly.place(frame, &part(sequence), &mut answer, &mut room);
        assert!(room <= room_before);
        assert_ne!(placed, Placed::WrongSequence);
    }
    assert!(assembly.is_whole() && room == room_before);
    let expected: Vec<u8> = (0..datagrams).flat_map(part).collect();
    assert_eq!(answer, expected);
}

/// Whatever frames a server sends, an answer of several messages takes no more than came, and no room for good. Each datagram has a
/// byte before it that says how many bytes it has.
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
            assembly.place(frame, payload, &mut answer, &mut room);
        }
        assert!(room <= ROOM && answer.len() + (ROOM - room) <= came);
    }
    assembly.begin(Messages::One, &mut room);
    assert_eq!(room, ROOM);
}

/// Whatever a server says comes to the same in any pieces, and no count is more than was asked for. The first byte chooses
/// what was asked.
pub(crate) fn any(input: &[u8]) {
    let Some((choice, text)) = input.split_first() else {
        return;
    };
    let change = |asks: &mut Asks| {
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
        asks.key_sizes = Sizes::Fixed(if *choice < 120 { 5 } else { 9 });
    };
    const COUNT: u64 = 3;
    let whole = codec(change);
    let expected = said_in_pieces(&whole, COUNT, text, text.len().max(1));
    for piece in [1, 2, 7, 64] {
        let pieces = codec(change);
        assert_eq!(said_in_pieces(&pieces, COUNT, text, piece), expected);
        assert_eq!(pieces.counts(), whole.counts(), "in pieces of {piece}");
    }
    let counts = whole.counts();
    let answers = counts.gets + counts.sets + counts.deletes + counts.increments;
    assert!(answers <= COUNT);
    assert!(counts.hits + counts.misses <= counts.keys_asked);
    assert!(counts.wrong_values <= counts.hits);
}
