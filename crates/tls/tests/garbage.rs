//! Bytes that no well-behaved peer sends: before, during and after the handshake.
#![forbid(unsafe_code)]

mod support;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

/// First bytes of a client: a hello shorter than announced, records of all kinds, HTTP.
const BEGINNINGS: [&[u8]; 8] = [
    b"",
    b"GET / HTTP/1.1\r\n\r\n",
    &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3],
    &[22, 3, 1, 255, 255],
    &[22, 3, 1, 0, 4, 1, 0, 0, 0],
    &[23, 3, 3, 0, 17],
    &[20, 3, 3, 0, 1, 1],
    &[21, 3, 3, 0, 2, 2, 40],
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_rejected(
        beginning in proptest::sample::select(&BEGINNINGS[..]),
        rest in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        support::garbage(&[beginning, &rest].concat());
    }

    #[test]
    fn tampered_data_is_never_delivered(
        changes in proptest::collection::vec((0u16..45_000, 1u8..), 0..4),
    ) {
        let bytes: Vec<u8> = changes
            .iter()
            .flat_map(|(place, flip)| [(place >> 8) as u8, *place as u8, *flip])
            .collect();
        support::tampering(&bytes);
    }
}

#[test]
fn unmodified_data_is_received() {
    support::tampering(&[]);
}

#[test]
fn tampered_handshake_terminates() {
    for place in 0..2_000u16 {
        support::tampering(&[(place >> 8) as u8, place as u8, 0x55]);
    }
}

type Check = fn(&[u8]);

#[test]
fn fuzz_regressions_pass() {
    let crashes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/crashes");
    let targets: [(&str, Check); 2] = [
        ("tls_handshake", support::garbage),
        ("tls_tampering", support::tampering),
    ];
    for (target, check) in targets {
        // A target without failures has no directory.
        for entry in fs::read_dir(crashes.join(target)).into_iter().flatten() {
            let path = entry.expect("a directory that opened can be listed").path();
            eprintln!("{}", path.display());
            check(&fs::read(&path).expect("what is listed can be read"));
        }
    }
}
