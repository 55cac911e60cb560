//! The configurations in `examples/` have neither errors nor warnings.

use std::fs;
use std::path::{Path, PathBuf};

use onrush_config::{IncludeReader, Sources, parse_sources};

/// Files of this machine; supports only patterns that end with `/*.toml`.
struct Disk;

impl IncludeReader for Disk {
    fn find(&mut self, directory: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
        let directory = match name.strip_suffix("/*.toml") {
            Some(below) => directory.join(below),
            None => return Ok(vec![directory.join(name)]),
        };
        let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        });
        paths.sort();
        Ok(paths)
    }

    fn identity(&mut self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn read(&mut self, path: &Path) -> Result<String, String> {
        fs::read_to_string(path).map_err(|error| error.to_string())
    }
}

#[test]
fn examples_parse_without_warnings() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (mut count, mut included) = (0, 0);
    for entry in fs::read_dir(&directory).expect("the repository has examples") {
        let path = entry.expect("a directory that opened can be listed").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("what is listed can be read");
        let sources = Sources::read(text, &path, &mut Disk);
        match parse_sources(&sources) {
            Ok(parsed) => assert_eq!(parsed.warnings, [], "{}", path.display()),
            Err(errors) => panic!("{errors}"),
        }
        count += 1;
        included += sources.iter().count() - 1;
    }
    assert!(
        count >= 3 && included >= 2,
        "only {count} examples and {included} files that they include, in {}",
        directory.display()
    );
}
