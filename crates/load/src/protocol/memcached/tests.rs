//! Tests of responses split into pieces, valid and invalid.

use super::check::{codec, outcomes_in_pieces};
use super::*;
use crate::requests::memcached::ratio::{Command, Ratio};
use crate::requests::memcached::sizes::LengthDistribution;
use crate::requests::memcached::{CasUnique, Dialect, MemcachedOptions, Verify};
use crate::requests::response::Step;

/// Returns the outcomes and checks that they do not depend on the pieces.
#[track_caller]
fn said(change: impl Fn(&mut MemcachedOptions), count: u64, text: &str) -> (String, Counts) {
    let whole = codec(&change);
    let expected = outcomes_in_pieces(&whole, count, text.as_bytes(), text.len().max(1));
    for piece in 1..text.len() {
        let pieces = codec(&change);
        let all = outcomes_in_pieces(&pieces, count, text.as_bytes(), piece);
        assert_eq!(all, expected, "in pieces of {piece}");
        assert_eq!(pieces.counts(), whole.counts(), "in pieces of {piece}");
    }
    (expected.join(", "), whole.counts())
}

fn meta(asks: &mut MemcachedOptions) {
    asks.dialect = Dialect::Meta;
}

fn quiet(asks: &mut MemcachedOptions) {
    asks.dialect = Dialect::MetaQuiet;
}

#[test]
fn get_responses_are_hits_or_misses() {
    let (all, counts) = said(
        |_| (),
        3,
        "VALUE k0000 0 4\r\nabcd\r\nEND\r\nEND\r\nVALUE k0002 0 0\r\n\r\nEND\r\n",
    );
    assert_eq!(all, "hit, miss, hit");
    assert_eq!((counts.gets, counts.keys_asked), (3, 3));
    assert_eq!(
        (counts.hits, counts.misses, counts.value_bytes_read),
        (2, 1, 4)
    );
}

#[test]
fn hit_must_have_requested_key() {
    let text = "VALUE k00000000 0 4\r\nabcd\r\nEND\r\nVALUE k00000001 0 4\r\nabcd\r\nEND\r\n";
    let long = |asks: &mut MemcachedOptions| asks.key_sizes = LengthDistribution::Fixed(9);
    let (all, counts) = said(long, 2, text);
    assert_eq!((all.as_str(), counts.hits), ("hit, hit", 2));
    for (right, wrong) in [
        ("k00000001", "k00000002"),
        ("k00000001", "a00000001"),
        ("1 0 4", "1 0 3"),
        ("1 0 4", "1 x 4"),
        ("1 0 4", "1 1 4"),
    ] {
        let (all, _) = said(long, 2, &text.replace(right, wrong));
        let expected = match wrong {
            "1 1 4" => "hit, hit",
            "1 0 3" => "hit, a value that is longer than announced",
            "1 x 4" => "hit, a line that is not a response to the command",
            _ => "hit, wrong_value!",
        };
        assert_eq!(all, expected, "{wrong}");
    }
}

#[test]
fn quiet_batch_ends_with_mn() {
    let hit = |opaque: &str| format!("VA 1 O{opaque}\r\na\r\n");
    let (all, counts) = said(quiet, 2, &(hit("aaaa") + &hit("aaab") + "MN\r\n"));
    assert_eq!((all.as_str(), counts.hits), ("hit, hit", 2));
    let (all, _) = said(quiet, 2, &(hit("aaaa") + &hit("aaab") + "EN\r\n"));
    assert_eq!(all, "hit, a line that is not a response to the command");
    assert_eq!(
        said(quiet, 2, &(hit("aaaa") + &hit("aaab"))).0,
        "hit, partial"
    );
}

#[test]
fn multiget_hits_are_counted_per_key() {
    let three = |asks: &mut MemcachedOptions| {
        asks.multiget = 3;
        asks.versions = CasUnique::Yes;
    };
    let text = "VALUE k0000 0 4 1\r\nabcd\r\nVALUE k0002 0 4 2\r\nEND\r\r\nEND\r\nEND\r\n";
    let (all, counts) = said(three, 2, text);
    assert_eq!(all, "partial_hit, miss");
    assert_eq!((counts.hits, counts.misses, counts.keys_asked), (2, 4, 6));
    // In another order, as some proxies send them.
    let text = "VALUE k0002 0 1\r\na\r\nVALUE k0000 0 1\r\na\r\nVALUE k0001 0 1\r\na\r\nEND\r\n";
    assert_eq!(said(three, 1, text).0, "hit");
    let text = "VALUE k0000 0 1\r\na\r\n".repeat(4) + "END\r\n";
    assert_eq!(said(three, 1, &text).0, "more values than requested keys");
}

#[test]
fn meta_multiget_ends_with_response_for_last_key() {
    let three = |asks: &mut MemcachedOptions| {
        meta(asks);
        asks.multiget = 3;
    };
    let text = "VA 4 Oaaaa\r\nabcd\r\nEN Oaaab\r\nVA 0 Oaaac\r\n\r\nEN\r\nEN Oaaae\r\nEN\r\n";
    let (all, counts) = said(three, 2, text);
    assert_eq!(all, "partial_hit, miss");
    assert_eq!((counts.gets, counts.keys_asked), (2, 6));
    assert_eq!((counts.hits, counts.misses), (2, 4));
    // An error for one key is an error of the request; the other keys are answered nevertheless.
    let text = "VA 1 Oaaaa\r\na\r\nSERVER_ERROR x\r\nEN\r\nVA 1 Oaaad\r\na\r\nEN\r\nEN\r\n";
    let (all, counts) = said(three, 2, text);
    assert_eq!(all, "server_error!, partial_hit");
    assert_eq!((counts.hits, counts.misses, counts.keys_asked), (2, 2, 6));
    let (all, _) = said(three, 1, "VA 1 Oaaab\r\na\r\n");
    assert_eq!(all, "a response with the opaque of another command");
}

#[test]
fn quiet_multiget_ends_with_later_response() {
    let three = |asks: &mut MemcachedOptions| {
        quiet(asks);
        asks.multiget = 3;
    };
    for (text, expected) in [
        (
            "VA 1 Oaaab\r\na\r\nVA 1 Oaaae\r\na\r\nMN\r\n",
            "partial_hit, partial_hit",
        ),
        (
            "VA 1 Oaaad\r\na\r\nVA 1 Oaaae\r\na\r\nVA 1 Oaaaf\r\na\r\nMN\r\n",
            "miss, hit",
        ),
        ("MN\r\n", "miss, miss"),
        (
            "VA 1 Oaaag\r\na\r\n",
            "a response with the opaque of another command",
        ),
    ] {
        assert_eq!(said(three, 2, text).0, expected, "{text:?}");
    }
}

#[test]
fn storage_command_responses_are_parsed() {
    for (ratio, text, expected) in [
        (
            "0:1",
            "STORED\r\nNOT_STORED\r\nEXISTS\r\n",
            "stored, not_stored, exists",
        ),
        (
            "0:0:1",
            "DELETED\r\nNOT_FOUND\r\nDELETED\n",
            "deleted, not_found, deleted",
        ),
        (
            "0:0:0:1",
            "1\r\n10 \r\nNOT_FOUND\r\n",
            "incremented, incremented, not_found",
        ),
    ] {
        let with_ratio = |asks: &mut MemcachedOptions| asks.ratio = Ratio::parse(ratio).unwrap();
        assert_eq!(said(with_ratio, 3, text).0, expected);
    }
    let sets = |asks: &mut MemcachedOptions| asks.ratio = Ratio::SETS;
    let (_, counts) = said(sets, 3, "STORED\r\nNOT_STORED\r\nSTORED\r\n");
    assert_eq!(
        (counts.sets, counts.stored, counts.value_bytes_written),
        (3, 2, 8)
    );
}

#[test]
fn verified_value_must_match_key() {
    let verified = |asks: &mut MemcachedOptions| {
        asks.verify = Verify::Yes;
        asks.value_sizes = LengthDistribution::Fixed(40);
    };
    let codec = codec(verified);
    let value = |key: u64, length: usize| {
        let mut out = Vec::new();
        crate::requests::memcached::value::Values::new().write(key, length, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(codec.reading.workload.command(0), Command::Get);
    let answer =
        |key: &str, value: &str| format!("VALUE {key} 0 {}\r\n{value}\r\nEND\r\n", value.len());
    let right = value(0, 40);
    let changed = right.replace(&right[39..], "A");
    for (text, expected) in [
        (answer("k0000", &right), "hit"),
        (answer("k0000", &value(1, 40)), "wrong_value!"),
        (answer("k0000", &value(0, 39)), "wrong_value!"),
        (answer("k0000", &changed), "wrong_value!"),
        (answer("k0001", &value(1, 40)), "wrong_value!"),
    ] {
        let (all, counts) = said(verified, 1, &text);
        assert_eq!(all, expected, "{text}");
        assert_eq!(counts.wrong_values, u64::from(expected != "hit"));
    }
    // The key is checked without verifying the value.
    assert_eq!(said(|_| (), 1, &answer("k0001", "abcd")).0, "wrong_value!");
}

#[test]
fn meta_responses_are_matched_by_opaque() {
    let (all, counts) = said(meta, 3, "VA 4 Oaaaa\r\nabcd\r\nEN\r\nEN Oaaac\r\n");
    assert_eq!(
        (all.as_str(), counts.hits, counts.misses),
        ("hit, miss, miss", 1, 2)
    );
    for (text, part) in [
        ("VA 4 Oaaab\r\nabcd\r\n", "opaque of another command"),
        ("VA 4\r\nabcd\r\n", "without the opaque"),
        ("HD Oaaaa\r\n", "not a response to the command"),
    ] {
        let (all, _) = said(meta, 1, text);
        assert!(all.contains(part), "{text}: {all}");
    }
}

#[test]
fn omitted_quiet_responses_imply_default_outcome() {
    for (text, expected) in [
        ("MN\r\n", "miss, miss, miss"),
        ("VA 1 Oaaaa\r\na\r\nMN\r\n", "hit, miss, miss"),
        ("VA 1 Oaaab\r\na\r\nMN\r\n", "miss, hit, miss"),
        (
            "VA 1 Oaaaa\r\na\r\nVA 1 Oaaac\r\na\r\nMN\r\n",
            "hit, miss, hit",
        ),
        (
            "SERVER_ERROR x\r\nVA 1 Oaaab\r\na\r\nMN\r\n",
            "server_error!, hit, miss",
        ),
        (
            "VA 1 Oaaac\r\na\r\nVA 1 Oaaad\r\na\r\n",
            "miss, miss, a line that is not a response to the command",
        ),
        (
            "VA 1 Oaaad\r\na\r\nMN\r\n",
            "a response with the opaque of another command",
        ),
        ("VA 1 Oaaac\r\na\r\n", "miss, miss, partial"),
    ] {
        assert_eq!(said(quiet, 3, text).0, expected, "{text}");
    }
    let mixed = |asks: &mut MemcachedOptions| {
        quiet(asks);
        asks.ratio = Ratio::parse("1:1:1").unwrap();
    };
    let codec = codec(mixed);
    let commands: Vec<Command> = (0..20)
        .map(|number| codec.reading.workload.command(number))
        .collect();
    let (all, counts) = said(
        mixed,
        20,
        "SERVER_ERROR out of memory storing object\r\nMN\r\n",
    );
    let first_set = commands.iter().position(|command| *command == Command::Set);
    let expected = commands
        .iter()
        .enumerate()
        .map(|(place, command)| match command {
            Command::Get => "miss",
            Command::Set if Some(place) == first_set => "server_error!",
            Command::Set => "stored",
            Command::Delete => "deleted_or_not_found",
            Command::Increment => unreachable!("the ratio has none"),
        });
    assert_eq!(all, expected.collect::<Vec<_>>().join(", "));
    assert_eq!(
        counts.errors["SERVER_ERROR out of memory storing object"],
        1
    );
}

#[test]
fn errors_are_counted_by_message() {
    let text = "ERROR\r\nCLIENT_ERROR bad command line format\r\nSERVER_ERROR out of memory\r\n";
    for change in [(|_| ()) as fn(&mut MemcachedOptions), meta] {
        let (all, counts) = said(change, 3, text);
        assert_eq!(all, "error!, client_error!, server_error!");
        assert_eq!(counts.errors["SERVER_ERROR out of memory"], 1);
        assert_eq!((counts.gets, counts.hits, counts.misses), (3, 0, 0));
    }
}

#[test]
fn other_protocols_are_refused() {
    let endless = "a".repeat(crate::limits::LINE_BYTES_MAX + 1);
    for (text, part) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP response"),
        ("-ERR unknown command\r\n", "a Redis response"),
        ("\u{15}\u{3}\u{3}", "memcacheds://"),
        ("hello\r\n", "not a response to the command"),
        (
            "VALUE k0000 0 4\r\nabcdef\r\nEND\r\n",
            "longer than announced",
        ),
        (
            "VALUE k0000 0 99999999999999999999\r\n",
            "not a response to the command",
        ),
        ("\r\n", "not a response to the command"),
        (&endless, "a line longer than 2 KiB"),
    ] {
        let (all, _) = said(|_| (), 1, text);
        assert!(all.contains(part), "{text}: {all}");
    }
}

#[test]
fn large_unverified_value_is_skipped() {
    let header = b"VALUE k0000 0 5000000000\r\nab";
    let seen = codec(|asks| {
        asks.verify = Verify::Yes;
        asks.value_sizes = LengthDistribution::Fixed(4);
    });
    // The length differs from that of the key's value, so the value is wrong without being read.
    for codec in [codec(|_| ()), seen] {
        codec.ends[0].set(1);
        let mut incoming = codec.incoming(0, 0);
        assert_eq!(incoming.step(header).0, header.len());
        assert_eq!(incoming.skippable_bytes(), 4_999_999_998);
        incoming.skip_bytes(4_999_999_998);
        let (bytes, step) = incoming.step(b"\r\nEND\r\n");
        assert_eq!(bytes, 7);
        assert!(matches!(step, Step::Done(_)));
    }
}

#[test]
fn batch_concatenates_its_requests() {
    for (change, expected) in [
        (
            (|_| ()) as fn(&mut MemcachedOptions),
            "get k0005\r\nget k0006\r\n",
        ),
        (meta, "mg k0005 v Oaaaf\r\nmg k0006 v Oaaag\r\n"),
        (quiet, "mg k0005 v q Oaaaf\r\nmg k0006 v q Oaaag\r\nmn\r\n"),
    ] {
        let (codec, mut text) = (codec(change), Vec::new());
        for before in [(0, 1), (3, 2)] {
            codec.batch(before, &mut text);
            codec.batch((5, 2), &mut text);
            assert_eq!(str::from_utf8(&text).unwrap(), expected);
        }
    }
}
