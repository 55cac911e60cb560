//! `include`: the files of a configuration. The file system is accessed only through [`Files`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::limits::{FILES_MAX, INCLUDES_MAX};
use crate::size_counter::SizeCounter;
use crate::sources::{Sources, Span};
use crate::toml_values::{kind_of, one_or_list};

pub(crate) const KEY: &str = "include";

const EXPECTED: &str = "a file, a pattern such as \"conf.d/*.toml\", or a list of them";

/// Access to the files that a configuration may include.
pub trait IncludeReader {
    /// Returns the files that match `name` in `directory`, in order. A name that is not a pattern stands for itself.
    ///
    /// # Errors
    /// A sentence that names the directory or file in question.
    fn find(&mut self, directory: &Path, name: &str) -> Result<Vec<PathBuf>, String>;

    /// Returns the directory of a pattern if it does not exist; patterns themselves may match no file.
    fn missing_directory(&mut self, _directory: &Path, _name: &str) -> Option<PathBuf> {
        None
    }

    /// Canonical path of a file, the same for all paths that lead to it.
    fn identity(&mut self, path: &Path) -> PathBuf;

    /// Reads a file.
    ///
    /// # Errors
    /// The end of a sentence that begins with the file's name.
    fn read(&mut self, path: &Path) -> Result<String, String>;
}

/// [`Files`] without any file, for a single text.
struct NoFiles;

impl IncludeReader for NoFiles {
    fn find(&mut self, _directory: &Path, _name: &str) -> Result<Vec<PathBuf>, String> {
        Err("include is not supported here: expected a single file".to_owned())
    }

    fn identity(&mut self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn read(&mut self, _path: &Path) -> Result<String, String> {
        Err("files are not read here".to_owned())
    }
}

impl Sources {
    /// A single file; an `include` in it is an error.
    pub fn single(text: impl Into<String>, path: impl Into<PathBuf>) -> Sources {
        Sources::read(text, path, &mut NoFiles)
    }

    /// A file and its includes, read through `files`. Errors are reported when the configuration is parsed.
    pub fn read(
        text: impl Into<String>,
        path: impl Into<PathBuf>,
        files: &mut dyn IncludeReader,
    ) -> Sources {
        let mut sources = Sources::of(text.into(), path.into());
        let first = sources.first();
        let mut following = IncludeResolver {
            known: HashMap::from([(files.identity(first.path()), None)]),
            extent: SizeCounter::default(),
            files,
        };
        match following.extent.add(first.text()) {
            Ok(()) => following.file(0, 0, &mut sources),
            Err(message) => sources.errors.push((0..0, message)),
        }
        sources
    }
}

struct IncludeResolver<'f> {
    files: &'f mut dyn IncludeReader,
    /// Files of the configuration, each with the place that includes it.
    known: HashMap<PathBuf, Option<Span>>,
    extent: SizeCounter,
}

impl IncludeResolver<'_> {
    /// Reads the files that file `at` includes, at this depth of includes.
    fn file(&mut self, at: usize, depth: usize, sources: &mut Sources) {
        for (span, name) in included_names(at, sources) {
            if depth == INCLUDES_MAX {
                let message = format!(
                    "files include each other in a chain that is too long: expected at most {INCLUDES_MAX}"
                );
                sources.errors.push((span, message));
                return;
            }
            let directory = sources.files[at].directory().to_owned();
            match self.files.find(&directory, &name) {
                Ok(paths) => {
                    if paths.is_empty()
                        && let Some(missing) = self.files.missing_directory(&directory, &name)
                    {
                        let message = format!(
                            "include matches no file: directory {} does not exist",
                            missing.display()
                        );
                        sources.warnings.push((span.clone(), message));
                    }
                    for path in paths {
                        self.include(at, path, &span, depth, sources);
                    }
                }
                Err(message) => sources.errors.push((span, message)),
            }
        }
    }

    fn include(
        &mut self,
        by: usize,
        path: PathBuf,
        span: &Span,
        depth: usize,
        sources: &mut Sources,
    ) {
        match self.text(&path, span, sources) {
            Ok(Some(text)) => {
                let at = sources.push(path, text);
                sources.files[by].included.push(at);
                self.file(at, depth + 1, sources);
            }
            Ok(None) => {}
            Err(message) => sources.errors.push((span.clone(), message)),
        }
    }

    /// Reads the file that is included at `span`; `None` beyond the maximum number of files, which is reported once.
    fn text(
        &mut self,
        path: &Path,
        span: &Span,
        sources: &Sources,
    ) -> Result<Option<String>, String> {
        let shown = path.display();
        let identity = self.files.identity(path);
        if let Some(before) = self.known.get(&identity) {
            return Err(match before {
                Some(before) => format!(
                    "{shown} is included twice, here and in {}: expected it once",
                    sources.format_place(before)
                ),
                None => format!(
                    "{shown} is the main configuration file, which cannot be included: expected other files"
                ),
            });
        }
        let count = self.known.len();
        if count > FILES_MAX {
            return Ok(None);
        }
        self.known.insert(identity, Some(span.clone()));
        if count == FILES_MAX {
            return Err(format!(
                "the configuration has too many files: expected at most {FILES_MAX}"
            ));
        }
        let text = self.files.read(path);
        let text = text.map_err(|why| format!("cannot include {shown}: {why}"))?;
        let added = self.extent.add(&text);
        added.map_err(|why| format!("cannot include {shown}: with it, {why}"))?;
        Ok(Some(text))
    }
}

/// Included names of a file with their places; none if the file is not valid TOML, which the parser reports later.
fn included_names(at: usize, sources: &mut Sources) -> Vec<(Span, String)> {
    let source = &sources.files[at];
    // Skips the parser for most files. A key may be written with escapes.
    if !source.text.contains(KEY) && !source.text.contains('\\') {
        return Vec::new();
    }
    let Ok(table) = DeTable::parse(&source.text) else {
        return Vec::new();
    };
    let Some(value) = table.get_ref().get(KEY) else {
        return Vec::new();
    };
    let (mut asked, mut wrong) = (Vec::new(), Vec::new());
    for value in one_or_list(value) {
        let span = source.to_span(value.span());
        match name(value) {
            Ok(name) => asked.push((span, name.to_owned())),
            Err(message) => wrong.push((span, message)),
        }
    }
    sources.errors.extend(wrong);
    asked
}

fn name<'a>(value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, String> {
    let Some(name) = value.get_ref().as_str() else {
        return Err(format!("{KEY} is {}: expected {EXPECTED}", kind_of(value)));
    };
    if name.is_empty() || name.contains('\0') {
        return Err(format!("{name:?} is not a path: expected {EXPECTED}"));
    }
    Ok(name)
}
