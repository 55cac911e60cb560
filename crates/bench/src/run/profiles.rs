//! Writes CPU profiles to the output directory: folded stacks and flame graphs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use onrush_file::Output;

use super::flame::flame_graph;
use crate::collect::stacks::Folded;

const DIRECTORY: &str = "profile";
/// Maximum length of a work's or variant's name in a file name, in characters.
const NAME_MAX: usize = 60;

#[derive(Debug)]
pub(super) struct Profiles {
    out: PathBuf,
    written: BTreeSet<String>,
}

impl Profiles {
    pub(super) fn below(out: &Path) -> Profiles {
        Profiles {
            out: out.to_owned(),
            written: BTreeSet::new(),
        }
    }

    /// A unique file name: names that differ only in replaced characters are numbered.
    fn name(&mut self, parts: [&str; 4]) -> String {
        let plain = |name: &str| -> String {
            let letters = name.chars().take(NAME_MAX);
            letters
                .map(|letter| {
                    if letter.is_ascii_alphanumeric() {
                        letter
                    } else {
                        '-'
                    }
                })
                .collect()
        };
        let stem = parts.map(plain).join(".");
        let mut name = stem.clone();
        let mut number = 2;
        while !self.written.insert(name.clone()) {
            name = format!("{stem}.{number}");
            number += 1;
        }
        name
    }

    /// Writes the profile of a work, variant, round and role. Returns the path of its folded stacks relative to the
    /// output directory.
    ///
    /// # Errors
    /// If a file cannot be written, as text.
    pub(super) fn write(&mut self, parts: [&str; 4], folded: &Folded) -> Result<String, String> {
        let directory = self.out.join(DIRECTORY);
        let name = self.name(parts);
        let write = |extension: &str, text: &str| {
            let path = directory.join(format!("{name}.{extension}"));
            let file = Output::new_nofollow(&path);
            file.and_then(|file| file.write(|writer| writer.write_all(text.as_bytes())))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
        write("folded", &folded.text)?;
        write("svg", &flame_graph(&folded.text))?;
        Ok(format!("{DIRECTORY}/{name}.folded"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colliding_file_names_are_made_unique() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut profiles = Profiles::below(directory.path());
        let folded = Folded {
            text: "onrush;main 3\n".into(),
            samples: 3,
        };
        let mut write = |work: &str| profiles.write([work, "nginx", "1", "server"], &folded);
        assert_eq!(
            write("a b").as_deref(),
            Ok("profile/a-b.nginx.1.server.folded")
        );
        assert_eq!(
            write("a/b").as_deref(),
            Ok("profile/a-b.nginx.1.server.2.folded")
        );
        let path = directory.path().join("profile/a-b.nginx.1.server.2.svg");
        let svg = fs::read_to_string(path).expect("the graph stands beside it");
        assert!(svg.contains("main"), "{svg}");
        let long = "x".repeat(1_000);
        assert!(write(&long).is_ok());
    }

    #[test]
    fn write_error_includes_path() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let why = Profiles::below(file.path()).write(["a", "b", "1", "client"], &Folded::default());
        assert!(why.is_err_and(|why| why.contains("cannot create") && why.contains("profile")));
    }
}
