//! What answers come to in pieces of any size, for tests and for the fuzzer.

use std::sync::Arc;

use super::{Codec, OUTCOMES};
use crate::memcached::keys::Distribution;
use crate::memcached::ratio::Ratio;
use crate::memcached::sizes::Sizes;
use crate::memcached::workload::Workload;
use crate::memcached::{Asks, Dialect, Verify};
use crate::protocol::response::{Met, Step};

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
    for number in 0..count {
        let mut incoming = codec.incoming(0, number);
        loop {
            let (bytes, step) = incoming.step(&text[at..end]);
            at += bytes;
            match step {
                Step::Done(response) => {
                    let name = (OUTCOMES.name)(response.outcome.number);
                    all.push(match response.met {
                        Met::Yes => name,
                        Met::OtherOutcome | Met::OtherBody => format!("{name}!"),
                    });
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
