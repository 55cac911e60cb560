//! Bytes of strangers, for tests and for the fuzzer: whatever a server says, it comes to the same in any pieces, and to an end.

use crate::protocol::memcached::check;

/// What any server of memcached may say. The first byte chooses what it was asked.
pub fn memcached_answers(input: &[u8]) {
    check::any(input);
}

/// What any server of memcached may send over UDP.
pub fn memcached_datagrams(input: &[u8]) {
    check::any_datagrams(input);
    check::any_frames(input);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_memcached_says_comes_to_the_same_in_any_pieces(
            first in any::<u8>(),
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("END\r\n".to_owned()),
                    Just("EN\r\n".to_owned()),
                    Just("MN\r\n".to_owned()),
                    Just("STORED\r\n".to_owned()),
                    Just("DELETED\r\n".to_owned()),
                    Just("SERVER_ERROR out of memory storing object\r\n".to_owned()),
                    Just("HTTP/1.1 400 Bad Request\r\n".to_owned()),
                    (0_u64..4).prop_map(|number| format!("HD O{number}\r\n")),
                    (0_u64..4, 0_usize..40).prop_map(|(number, bytes)| {
                        format!("VA {bytes} O{number}\r\n{}\r\n", "v".repeat(bytes))
                    }),
                    (0_u64..4, 0_usize..40).prop_map(|(key, bytes)| {
                        format!("VALUE k000{key} 0 {bytes}\r\n{}\r\n", "v".repeat(bytes))
                    }),
                    "[ -~]{0,20}\r\n",
                    any::<u64>().prop_map(|bytes| format!("VALUE k0000 0 {bytes}\r\n")),
                ],
                0..8,
            ),
            cut in 0_usize..200,
        ) {
            let mut input = vec![first];
            input.extend(lines.concat().into_bytes());
            let cut = cut.min(input.len() - 1);
            input.truncate(input.len() - cut);
            memcached_answers(&input);
        }

        #[test]
        fn datagrams_of_an_answer_make_it_in_any_order(
            input in proptest::collection::vec(any::<u8>(), 0..200),
            frames in proptest::collection::vec((0_u8..4, 0_u8..4, "[a-z]{0,9}"), 0..20),
        ) {
            memcached_datagrams(&input);
            let datagrams = frames.iter().flat_map(|(sequence, datagrams, payload)| {
                let frame = [0, 1, 0, *sequence, 0, *datagrams, 0, 0];
                [&[8 + payload.len() as u8], &frame[..], payload.as_bytes()].concat()
            });
            memcached_datagrams(&datagrams.collect::<Vec<u8>>());
        }

        #[test]
        fn so_do_any_bytes(input in proptest::collection::vec(any::<u8>(), 0..400)) {
            memcached_answers(&input);
        }
    }

    #[test]
    fn inputs_that_once_failed_are_read_as_they_should() {
        let crashes = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/crashes/memcached_answers");
        // A target that never failed has no directory.
        for entry in std::fs::read_dir(crashes).into_iter().flatten() {
            let path = entry.expect("a directory that opened can be listed").path();
            memcached_answers(&std::fs::read(path).expect("what is listed can be read"));
        }
    }
}
