//! Regression tests: every input on which a fuzz target once failed, in `fuzz/crashes/<target>/`.

use std::fs;
use std::path::Path;

use crate::support::check;

type Check = fn(&[u8]);

#[test]
fn fuzz_regression_inputs_pass() {
    let targets: [(&str, Check); 9] = [
        ("request", check::request),
        ("response", check::response),
        ("chunked", check::chunked),
        ("pipeline", |input| drop(check::pipeline(input))),
        ("proxy_protocol", check::proxy_protocol),
        ("forwarded", check::forwarded),
        ("fields", check::fields),
        ("hpack", check::hpack),
        ("http2", check::http2),
    ];
    let crashes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/crashes");
    for (target, check) in targets {
        // A target that never failed has no directory.
        for entry in fs::read_dir(crashes.join(target)).into_iter().flatten() {
            let path = entry.expect("a directory that opened can be listed").path();
            eprintln!("{}", path.display());
            check(&fs::read(&path).expect("what is listed can be read"));
        }
    }
}
