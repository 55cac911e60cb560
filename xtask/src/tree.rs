//! The repository's files as text, without build output and ignored files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Files by their path from the root, separated by `/`.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    /// Binary files such as corpora and pictures: tidy does not read them, but links may lead to them.
    others: BTreeSet<String>,
}

/// Root of the repository whose `cargo xtask` or `cargo test` runs. Determined at run time: if working copies share a
/// build directory, the program may have been built in another one.
pub(crate) fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent()
        .expect("xtask is a directory of the repository")
        .to_owned()
}

impl Tree {
    /// Reads every text file below `root`, except the entries of the root's `.gitignore`, `.git`, and build
    /// directories, which Cargo marks with a file named `CACHEDIR.TAG`.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Tree> {
        let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let mut skipped: Vec<PathBuf> = ignored
            .lines()
            .filter_map(|line| line.strip_prefix('/'))
            .map(|name| root.join(name))
            .collect();
        skipped.push(root.join(".git"));
        let mut files = BTreeMap::new();
        let mut others = BTreeSet::new();
        let mut directories = vec![root.to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory)
                .with_context(|| format!("reading {}", directory.display()))?
            {
                let path = entry?.path();
                if skipped.contains(&path) || path.is_symlink() {
                    continue;
                }
                if path.is_dir() {
                    if !path.join("CACHEDIR.TAG").exists() {
                        directories.push(path);
                    }
                    continue;
                }
                let name = path.strip_prefix(root).expect("found beneath the root");
                let name = name.to_string_lossy().into_owned();
                match fs::read_to_string(&path) {
                    Ok(text) => drop(files.insert(name, text)),
                    Err(_) => drop(others.insert(name)),
                }
            }
        }
        Ok(Tree { files, others })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        Tree {
            files: files
                .iter()
                .map(|(path, text)| (path.to_string(), text.to_string()))
                .collect(),
            others: BTreeSet::new(),
        }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn file(&self, path: &str) -> Option<(&str, &str)> {
        let (path, text) = self.files.get_key_value(path)?;
        Some((path, text))
    }

    /// Path and text of the files whose path ends with `end`.
    pub(crate) fn ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(move |(path, _)| path.ends_with(end))
    }

    /// Whether there is such a file, or a directory with files.
    pub(crate) fn has(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self.others.contains(path)
            || self.files.keys().any(|file| file.starts_with(&directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_can_target_binary_files_and_directories() {
        let directory = std::env::temp_dir().join(format!("onrush-tree-{}", std::process::id()));
        fs::create_dir_all(directory.join("docs")).expect("a temporary directory");
        fs::write(directory.join("docs/report.png"), [0xff, 0xfe]).expect("written");
        fs::write(directory.join("docs/serve.md"), "text").expect("written");
        let tree = Tree::read(&directory).expect("a tree");
        fs::remove_dir_all(&directory).expect("removed");
        assert!(tree.has("docs/report.png") && tree.has("docs/serve.md") && tree.has("docs"));
        assert!(!tree.has("docs/top.png"));
        assert_eq!(tree.files().count(), 1);
    }
}
