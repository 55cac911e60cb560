//! The configurations in `examples/` are valid and mean something: no errors, no warnings.

use std::fs;
use std::path::Path;

#[test]
fn every_example_is_valid_and_without_warnings() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in fs::read_dir(&directory).expect("the repository has examples") {
        let path = entry.expect("a directory that opened can be listed").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("what is listed can be read");
        match onrush_config::parse(&text, &path) {
            Ok(parsed) => assert_eq!(parsed.warnings, [], "{}", path.display()),
            Err(errors) => panic!("{errors}"),
        }
        count += 1;
    }
    assert!(
        count >= 3,
        "only {count} examples in {}",
        directory.display()
    );
}
