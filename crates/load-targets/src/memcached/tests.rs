//! Tests of a session's responses.

use onrush_config::plan::Memcached;
use proptest::prelude::*;

use super::cache::Cache;
use super::item::{Moment, Seconds};
use super::output::ResponseBuffer;
use super::server::check_any_input;
use super::session::{Next, Session};

const NOW: Moment = Moment {
    seconds: Seconds(1_000),
    unix: 1_700_000_000,
};

struct TestClient {
    cache: Cache,
    session: Session,
    now: Moment,
}

impl TestClient {
    fn with(plan: Memcached) -> Self {
        Self {
            cache: Cache::new(plan, NOW),
            session: Session::default(),
            now: NOW,
        }
    }

    fn begun() -> Self {
        Self::with(Memcached::default())
    }

    /// Returns the response to these bytes. The session must consume them all.
    fn say(&mut self, said: &[u8]) -> String {
        let (mut input, mut all) = (said, Vec::new());
        loop {
            let mut answers = ResponseBuffer::default();
            let heard = self
                .session
                .execute(input, &mut self.cache, self.now, &mut answers);
            let (done, next) = heard;
            input = &input[done..];
            all.extend(answers.concat());
            match next {
                Next::Flush => {}
                Next::Receive => break,
                Next::Close => {
                    all.extend(b"(end)");
                    break;
                }
            }
        }
        String::from_utf8(all).expect("tests store text")
    }
}

/// Checks each response in a sequence of requests.
fn check(plan: Memcached, conversation: &[(&str, &str)]) {
    let mut talk = TestClient::with(plan);
    for (said, answered) in conversation {
        let line = |text: &str| text.replace('\n', "\r\n");
        assert_eq!(talk.say(line(said).as_bytes()), line(answered), "{said}");
        // Only between commands is this a command, and answered so.
        assert_eq!(talk.say(b"mn\r\n"), "MN\r\n", "after {said}");
    }
}

#[test]
fn text_protocol_commands_store_and_find() {
    check(
        Memcached::default(),
        &[
            ("get a\n", "END\n"),
            ("set a 5 0 3\nabc\n", "STORED\n"),
            ("set b 0 0 0\n\n", "STORED\n"),
            ("get a none b\n", "VALUE a 5 3\nabc\nVALUE b 0 0\n\nEND\n"),
            ("gets a\n", "VALUE a 5 3 1\nabc\nEND\n"),
            ("add a 0 0 1\nx\n", "NOT_STORED\n"),
            ("add c 0 0 1\nx\n", "STORED\n"),
            ("replace none 0 0 1\nx\n", "NOT_STORED\n"),
            ("append a 9 9 2\nde\n", "STORED\n"),
            ("prepend a 9 9 1\n>\n", "STORED\n"),
            ("get a\n", "VALUE a 5 6\n>abcde\nEND\n"),
            ("cas a 0 0 1 1\nx\n", "EXISTS\n"),
            ("cas none 0 0 1 1\nx\n", "NOT_FOUND\n"),
            ("cas a 0 0 1 5\nx\n", "STORED\n"),
            (
                "delete a\ndelete a 0\ndelete a noreply\n",
                "DELETED\nNOT_FOUND\n",
            ),
            ("set n 0 0 2\n10\n", "STORED\n"),
            ("incr n 5\ndecr n 6\nincr none 1\n", "15\n9\nNOT_FOUND\n"),
            ("get n\n", "VALUE n 0 2\n9 \nEND\n"),
            (
                "decr n 100\nincr n 18446744073709551615\n",
                "0\n18446744073709551615\n",
            ),
            ("incr n 2\n", "1\n"),
            (
                "incr c 1\nincr n x\n",
                "CLIENT_ERROR cannot increment or decrement non-numeric value\nCLIENT_ERROR invalid numeric delta argument\n",
            ),
            ("touch n 100\ntouch none 1\n", "TOUCHED\nNOT_FOUND\n"),
            (
                "gat 0 n c none\n",
                "VALUE n 0 20\n1                   \nVALUE c 0 1\nx\nEND\n",
            ),
            ("set q 0 0 1 noreply\nx\nget q\n", "VALUE q 0 1\nx\nEND\n"),
            ("set old 0 -1 1\nx\nget old\n", "STORED\nEND\n"),
            ("verbosity 1\nflush_all\nget q\n", "OK\nOK\nEND\n"),
            ("flush_all noreply\nget q\n", "END\n"),
        ],
    );
}

#[test]
fn meta_commands_return_requested_flags() {
    check(
        Memcached::default(),
        &[
            ("mn\n", "MN\n"),
            ("mg a\nmg a q\nmg a k Oxy v\n", "EN\nEN ka Oxy\n"),
            ("ms a 3 F7 c Oab k\nabc\n", "HD c1 Oab ka\n"),
            ("ms b 1 q\nx\n", ""),
            ("mg a v f s c t k O1\n", "VA 3 f7 s3 c1 t-1 ka O1\nabc\n"),
            ("mg a h l\nmg a h\n", "HD h1 l0\nHD h1\n"),
            ("ms a 1 ME\nx\nms z 1 MR\nx\nms z 1 MA\nx\n", "NS\nNS\nNS\n"),
            (
                "ms a 2 MA\nde\nms a 1 MP\n>\nmg a v\n",
                "HD\nHD\nVA 6\n>abcde\n",
            ),
            (
                "ms a 1 C1\nx\nms none 1 C1\nx\nms a 1 C4\nx\n",
                "EX\nNF\nHD\n",
            ),
            ("md none\nmd a C1\nmd a q\nmg a\n", "NF\nEX\nEN\n"),
            (
                "ma n\nma n N0 J10 v\nma n D5 v c\nma n MD D100 v\nma n q\n",
                "NF\nVA 2\n10\nVA 2 c7\n15\nVA 1\n0\n",
            ),
            (
                "ma b\n",
                "CLIENT_ERROR cannot increment or decrement non-numeric value\n",
            ),
            (
                "mg YQ== b k\nms YQ== 1 b\nx\nmg YQ== b k v\nmg a v\n",
                "EN kYQ== b\nHD\nVA 1 kYQ== b\nx\nVA 1\nx\n",
            ),
            ("mg new N30 v t\nmg new v\n", "VA 0 t30 W\n\nVA 0 Z\n\n"),
            (
                "md b I T30\nmg b v t\nmg b v\n",
                "HD\nVA 1 t30 X W\nx\nVA 1 Z X\nx\n",
            ),
            (
                "mg b R60\nms b 1 T10\ny\nmg b R60 t\nmg b R60\n",
                "HD Z X\nHD\nHD t10 W\nHD Z\n",
            ),
            (
                "me none\nme b\n",
                "EN\nME b exp=10 la=0 cas=13 fetch=yes cls=1 size=3\n",
            ),
        ],
    );
}

#[test]
fn invalid_commands_get_error_responses() {
    let long = "k".repeat(251);
    let words = "a ".repeat(30);
    for (said, answered) in [
        ("\r\n", "ERROR\r\n"),
        ("get\r\n", "ERROR\r\n"),
        ("gets  \r\n", "ERROR\r\n"),
        ("gat x a\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
        ("gat 1\r\n", "END\r\n"),
        ("GET a\r\n", "ERROR\r\n"),
        ("set a 0 0\r\n", "ERROR\r\n"),
        ("set a 0 0 1 2 3\r\n", "ERROR\r\n"),
        (
            "set a x 0 1\r\n",
            "CLIENT_ERROR bad command line format\r\n",
        ),
        (
            "set a 0 0 -1\r\n",
            "CLIENT_ERROR bad command line format\r\n",
        ),
        ("set a 0 0 x noreply\r\n", ""),
        (
            "set a 0 0 3\r\nabcde\r\n",
            "CLIENT_ERROR bad data chunk\r\nERROR\r\n",
        ),
        (
            "set a 0 0 2000000\r\n",
            "SERVER_ERROR object too large for cache\r\n",
        ),
        (
            "delete a 5\r\n",
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n",
        ),
        ("mg\r\n", "ERROR\r\n"),
        ("mg a k k\r\n", "CLIENT_ERROR duplicate flag\r\n"),
        ("mg a !\r\n", "CLIENT_ERROR invalid flag\r\n"),
        (
            "mg a Tx\r\n",
            "CLIENT_ERROR bad token in command line format\r\n",
        ),
        ("md a !\r\n", "CLIENT_ERROR invalid or duplicate flag\r\n"),
        ("ms a\r\n", "CLIENT_ERROR bad command line format\r\n"),
        (
            "ms a 1 MX\r\nx\r\n",
            "CLIENT_ERROR invalid mode for ms M token\r\n",
        ),
        ("\u{80}", ""),
        ("quit\r\nget a\r\n", "(end)"),
        (
            "flush_all x\r\n",
            "CLIENT_ERROR invalid exptime argument\r\n",
        ),
        ("stats nothing\r\n", "ERROR\r\n"),
        (
            &format!("get a {long}\r\n"),
            "CLIENT_ERROR bad command line format\r\n",
        ),
        (
            &format!("set {long} 0 0 1\r\n"),
            "CLIENT_ERROR bad command line format\r\n",
        ),
        (
            &format!("mg {long}\r\n"),
            "CLIENT_ERROR bad command line format\r\n",
        ),
        (
            &format!("mg {words}\r\n"),
            "CLIENT_ERROR options flags are too long\r\n",
        ),
        (
            &format!("delete {long}\r\n"),
            "CLIENT_ERROR bad command line format\r\n",
        ),
    ] {
        assert_eq!(TestClient::begun().say(said.as_bytes()), answered, "{said}");
    }
    let nonsense = vec![b'x'; 3000];
    let said = TestClient::begun().say(&nonsense);
    assert_eq!(said, "CLIENT_ERROR line too long\r\n(end)");
    let said = TestClient::begun().say(&[0x80, 0, 0, 0]);
    assert!(said.ends_with("not spoken here\r\n(end)"), "{said}");
}

#[test]
fn oversized_value_is_discarded_and_removes_old() {
    let mut talk = TestClient::with(Memcached::Stored {
        memory: 64 * 1024,
        item_bytes_max: 100,
    });
    let large = "x".repeat(101);
    assert_eq!(talk.say(b"set a 0 0 1\r\nx\r\n"), "STORED\r\n");
    let said = format!("set a 0 0 101\r\n{large}\r\nget a\r\nms a 101\r\n{large}\r\nmn\r\n");
    let too_large = "SERVER_ERROR object too large for cache\r\n";
    let answered = format!("{too_large}END\r\n{too_large}MN\r\n");
    assert_eq!(talk.say(said.as_bytes()), answered);
    assert_eq!(talk.say(b"set a 0 0 60\r\n"), "");
    let part = "y".repeat(60);
    assert_eq!(talk.say(format!("{part}\r\n").as_bytes()), "STORED\r\n");
    let more = format!("append a 0 0 60\r\n{part}\r\n");
    assert_eq!(talk.say(more.as_bytes()), "NOT_STORED\r\n");
}

#[test]
fn long_get_line_is_processed_incrementally() {
    let mut talk = TestClient::begun();
    assert_eq!(talk.say(b"set key 0 0 1\r\nx\r\n"), "STORED\r\n");
    let keys = " key".repeat(10_000);
    let mut answered = String::new();
    let mut said = format!("get{keys} none\r\n").into_bytes();
    while !said.is_empty() {
        let piece: Vec<u8> = said.drain(..said.len().min(8_000)).collect();
        // The rest of a piece is less than a key.
        let heard = talk.say(&piece);
        let cut = piece
            .iter()
            .rev()
            .position(|&byte| byte == b' ' || byte == b'\n');
        let rest = cut.filter(|_| !said.is_empty()).unwrap_or(0);
        said.splice(..0, piece[piece.len() - rest..].to_vec());
        answered += &heard;
    }
    let expected = "VALUE key 0 1\r\nx\r\n".repeat(10_000) + "END\r\n";
    assert!(answered == expected);
    let long = "k".repeat(3_000);
    let said = talk.say(format!("get {long}").as_bytes());
    assert_eq!(said, "CLIENT_ERROR bad command line format\r\n");
    assert_eq!(talk.say(b" more\r\nmn\r\n"), "MN\r\n");
}

#[test]
fn synthetic_cache_has_every_key_and_stores_nothing() {
    check(
        Memcached::Synthetic { value_bytes: 3 },
        &[
            ("get a b\n", "VALUE a 0 3\nxxx\nVALUE b 0 3\nxxx\nEND\n"),
            (
                "set a 9 0 1\ny\nadd a 0 0 1\ny\nreplace a 0 0 1\ny\n",
                "STORED\nNOT_STORED\nSTORED\n",
            ),
            (
                "touch a -1\ndelete a\nmg a v h f\n",
                "TOUCHED\nDELETED\nVA 3 h0 f0\nxxx\n",
            ),
            ("mg a h v\n", "VA 3 h0\nxxx\n"),
        ],
    );
}

#[test]
fn items_expire_by_server_clock() {
    let mut talk = TestClient::begun();
    assert_eq!(
        talk.say(b"set a 0 10 1\r\nx\r\nset b 0 1700000005 1\r\nx\r\n"),
        "STORED\r\nSTORED\r\n"
    );
    talk.now.seconds = Seconds(1_004);
    assert_eq!(talk.say(b"mg a t\r\nmg b t\r\n"), "HD t6\r\nHD t1\r\n");
    talk.now.seconds = Seconds(1_005);
    assert_eq!(talk.say(b"mg a t\r\nmg b t\r\n"), "HD t5\r\nEN\r\n");
    assert_eq!(talk.say(b"flush_all 3\r\nmg a\r\n"), "OK\r\nHD\r\n");
    talk.now.seconds = Seconds(1_008);
    assert_eq!(talk.say(b"mg a\r\n"), "EN\r\n");
}

#[test]
fn stats_count_commands() {
    let mut talk = TestClient::begun();
    talk.say(b"set a 0 0 1\r\nx\r\nget a none\r\nmg a v\r\ndelete a\r\n");
    let stats = talk.say(b"stats\r\n");
    for line in [
        "cmd_get 3",
        "get_hits 2",
        "get_misses 1",
        "cmd_set 1",
        "delete_hits 1",
        "curr_items 0",
        "bytes 0",
    ] {
        assert!(stats.contains(&format!("STAT {line}\r\n")), "{stats}");
    }
    assert!(
        stats.starts_with("STAT version ") && stats.ends_with("END\r\n"),
        "{stats}"
    );
    assert_eq!(
        talk.say(b"stats reset\r\nstats items\r\n"),
        "RESET\r\nEND\r\n"
    );
    assert!(talk.say(b"stats\r\n").contains("STAT cmd_get 0\r\n"));
}

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("get".to_owned()),
        Just("gets".to_owned()),
        Just("gat".to_owned()),
        Just("set".to_owned()),
        Just("cas".to_owned()),
        Just("append".to_owned()),
        Just("incr".to_owned()),
        Just("delete".to_owned()),
        Just("mg".to_owned()),
        Just("ms".to_owned()),
        Just("md".to_owned()),
        Just("ma".to_owned()),
        Just("me".to_owned()),
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("0".to_owned()),
        Just("1".to_owned()),
        Just("3".to_owned()),
        Just("noreply".to_owned()),
        Just("v".to_owned()),
        Just("q".to_owned()),
        Just("N1".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("abc\r\n".to_owned()),
        Just("k".to_owned()),
        Just("T5".to_owned()),
        "[ -~]{0,8}",
    ];
    let words = prop::collection::vec(word, 0..60);
    let text = words.prop_map(|words| words.join(" ").into_bytes());
    prop_oneof![text, prop::collection::vec(any::<u8>(), 0..400)]
}

proptest! {
    #[test]
    fn responses_are_independent_of_read_boundaries(cut: u8, bytes in some_bytes()) {
        check_any_input(&[&[cut], &bytes[..]].concat());
    }
}
