//! Entry points for tests and the fuzzer: parsing any bytes of a server ends, and the result does not depend on how
//! they are split.

use crate::protocol::grpc::check as calls;
use crate::protocol::memcached::check;

/// Responses of a memcached server; the first byte chooses the workload.
pub fn memcached_answers(input: &[u8]) {
    check::any(input);
}

/// Datagrams of a memcached server.
pub fn memcached_datagrams(input: &[u8]) {
    check::any_datagrams(input);
    check::any_frames(input);
}

/// gRPC responses.
pub fn grpc_responses(input: &[u8]) {
    calls::any_response(input);
}

/// A descriptor set and a JSON message.
pub fn grpc_descriptors(input: &[u8]) {
    calls::any_descriptors(input);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn memcached_outcome_is_independent_of_read_boundaries(
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
        fn arbitrary_memcached_datagrams_are_parsed_consistently(
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
        fn arbitrary_memcached_bytes_are_parsed_consistently(input in proptest::collection::vec(any::<u8>(), 0..400)) {
            memcached_answers(&input);
        }
    }

    proptest! {
        #[test]
        fn grpc_outcome_is_independent_of_read_boundaries(
            status in any::<u8>(),
            piece in 0_u8..8,
            head in lines(),
            body in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..12),
                (0_u8..8, 0_u8..8).prop_map(|(says, has)| {
                    [&[0, 0, 0, 0, says][..], &vec![7; usize::from(has)]].concat()
                }),
            ],
            trailers in proptest::option::of(lines()),
        ) {
            let mut input = vec![status, piece];
            input.extend(head);
            input.push(0xfe);
            input.extend(body.iter().filter(|byte| **byte != 0xfe));
            if let Some(trailers) = trailers {
                input.push(0xfe);
                input.extend(trailers);
            }
            grpc_responses(&input);
        }

        #[test]
        fn arbitrary_grpc_bytes_are_parsed_consistently(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            grpc_responses(&input);
        }

        #[test]
        fn corrupted_grpc_descriptors_do_not_panic(
            at in any::<prop::sample::Index>(),
            with in proptest::collection::vec(any::<u8>(), 0..4),
            removed in 0_usize..4,
            json in prop_oneof![
                Just(String::from("{\"name\": \"x\", \"itemCount\": 3}")),
                "[{}\\[\\]\":,a-z0-9\\\\. ]{0,30}",
            ],
        ) {
            let mut set = crate::requests::grpc::descriptors::tests::shop();
            let at = at.index(set.len());
            let end = (at + removed).min(set.len());
            set.splice(at..end, with);
            let length = u16::try_from(set.len()).expect("the set is small");
            grpc_descriptors(&[&length.to_be_bytes()[..], &set, json.as_bytes()].concat());
        }
    }

    /// Fields of a response to a call, and others.
    fn lines() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just("content-type: application/grpc".to_owned()),
            Just("content-type: application/grpc+proto".to_owned()),
            Just("grpc-encoding: identity".to_owned()),
            Just("grpc-encoding: gzip".to_owned()),
            (0_u8..20).prop_map(|code| format!("grpc-status: {code}")),
            "[a-z:-]{0,6}[ -~]{0,6}",
        ];
        proptest::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n").into_bytes())
    }

    #[test]
    fn fuzz_regression_inputs_pass() {
        type Check = fn(&[u8]);
        let targets: [(&str, Check); 4] = [
            ("memcached_answers", memcached_answers),
            ("memcached_datagrams", memcached_datagrams),
            ("grpc_responses", grpc_responses),
            ("grpc_descriptors", grpc_descriptors),
        ];
        let crashes = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/crashes");
        for (target, check) in targets {
            // A target that never failed has no directory.
            for entry in std::fs::read_dir(crashes.join(target))
                .into_iter()
                .flatten()
            {
                let path = entry.expect("a directory that opened can be listed").path();
                check(&std::fs::read(path).expect("what is listed can be read"));
            }
        }
    }
}
