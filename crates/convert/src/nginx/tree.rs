//! Parses nginx's files into a tree of directives, with `include` resolved.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use onrush_file::{is_pattern, matching};

use super::lexer::{Lexer, Token, too_many_words};
use crate::limits;
use crate::source::directive::{Directive, Place};
use crate::source::note::Notes;
use crate::source::{Files, InputError};

pub(super) struct Tree {
    pub(super) directives: Vec<Directive>,
    /// Notes on `include` directives.
    pub(super) notes: Notes,
}

/// Reads `path` and all files that it includes.
pub(super) fn read(files: &dyn Files, path: &Path) -> Result<Tree, InputError> {
    let mut reader = Reader {
        files,
        directory: directory(path),
        notes: Notes::default(),
        directives: 0,
        opened: 0,
        bytes: 0,
    };
    let unreadable = |message| InputError {
        file: path.to_owned(),
        line: None,
        message,
    };
    let text = reader.open(path).map_err(unreadable)?;
    let directives = reader.file(path, &text, 0)?;
    Ok(Tree {
        directives,
        notes: reader.notes,
    })
}

/// Directories of server files, which nginx.conf includes from the directory above.
const SITES: [&str; 6] = [
    "conf.d",
    "http.d",
    "sites-available",
    "sites-enabled",
    "sites",
    "vhosts.d",
];

/// The directory for relative includes: that of nginx.conf, even if `path` is a file that nginx.conf includes.
fn directory(path: &Path) -> PathBuf {
    let own = path.parent().unwrap_or(Path::new(""));
    let is_of_sites = own
        .file_name()
        .is_some_and(|name| SITES.iter().any(|known| name == *known));
    match own.parent().filter(|_| is_of_sites) {
        Some(above) => above.to_owned(),
        None => own.to_owned(),
    }
}

struct Reader<'a> {
    files: &'a dyn Files,
    directory: PathBuf,
    notes: Notes,
    directives: usize,
    opened: usize,
    bytes: usize,
}

#[derive(Clone, Copy)]
struct Depth {
    blocks: usize,
    includes: usize,
}

impl Reader<'_> {
    fn open(&mut self, path: &Path) -> Result<String, String> {
        let text = self.files.read(path)?;
        self.opened += 1;
        self.bytes += text.len();
        if self.bytes > limits::BYTES_MAX || self.opened > limits::FILES_MAX {
            return Err(format!(
                "with this file the configuration is too long: expected at most {} MiB in {} files",
                limits::BYTES_MAX >> 20,
                limits::FILES_MAX
            ));
        }
        Ok(text)
    }

    fn file(
        &mut self,
        path: &Path,
        text: &str,
        includes: usize,
    ) -> Result<Vec<Directive>, InputError> {
        let name: Rc<str> = path.to_string_lossy().into();
        let mut lexer = Lexer::new(&name, text);
        let depth = Depth {
            blocks: 0,
            includes,
        };
        self.block(&mut lexer, &name, None, depth)
    }

    /// The directives up to the end of the file, or of the block that started in line `begin`.
    fn block(
        &mut self,
        lexer: &mut Lexer<'_>,
        file: &Rc<str>,
        begin: Option<usize>,
        depth: Depth,
    ) -> Result<Vec<Directive>, InputError> {
        let mut directives = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut first_line = 1;
        loop {
            let Some((token, line)) = lexer.next()? else {
                return self
                    .end_of_file(lexer, file, begin, &words)
                    .map(|()| directives);
            };
            match token {
                Token::Word(word) => {
                    if words.is_empty() {
                        first_line = line;
                    }
                    words.push(word);
                    if words.len() > limits::WORDS_MAX {
                        return Err(too_many_words(file, first_line));
                    }
                    continue;
                }
                Token::Close if words.is_empty() && begin.is_some() => return Ok(directives),
                Token::Close => {
                    let message = match words.is_empty() {
                        true => "unexpected \"}\": expected a directive".to_owned(),
                        false => format!("\"}}\" after {:?}: expected \";\"", words[0]),
                    };
                    return Err(InputError::at(file, line, message));
                }
                Token::End | Token::Open if words.is_empty() => {
                    let what = if token == Token::End { ";" } else { "{" };
                    let message = format!("{what:?} without a directive before it");
                    return Err(InputError::at(file, line, message));
                }
                Token::End | Token::Open => {}
            }
            let mut directive = self.directive(std::mem::take(&mut words), file, first_line)?;
            if token == Token::Open {
                directive.block = Some(self.inside(lexer, &directive, depth)?);
            }
            match directive.name() == "include" && directive.block.is_none() {
                true => directives.extend(self.include(directive, depth.includes)?),
                false => directives.push(directive),
            }
        }
    }

    fn end_of_file(
        &self,
        lexer: &Lexer<'_>,
        file: &str,
        begin: Option<usize>,
        words: &[String],
    ) -> Result<(), InputError> {
        let message = match (words.first(), begin) {
            (Some(word), _) => format!("the file ends after {word:?}: expected \";\" or \"{{\""),
            (None, Some(line)) => {
                format!(
                    "the file ends inside the block that starts in line {line}: expected \"}}\""
                )
            }
            (None, None) => return Ok(()),
        };
        Err(InputError::at(file, lexer.line(), message))
    }

    fn directive(
        &mut self,
        words: Vec<String>,
        file: &Rc<str>,
        line: usize,
    ) -> Result<Directive, InputError> {
        self.directives += 1;
        if self.directives > limits::DIRECTIVES_MAX {
            let message = format!(
                "the configuration is too long: expected at most {} directives",
                limits::DIRECTIVES_MAX
            );
            return Err(InputError::at(file, line, message));
        }
        Ok(Directive {
            number: self.directives,
            place: Place {
                file: Rc::clone(file),
                line,
            },
            words,
            block: None,
        })
    }

    fn inside(
        &mut self,
        lexer: &mut Lexer<'_>,
        directive: &Directive,
        depth: Depth,
    ) -> Result<Vec<Directive>, InputError> {
        let Place { file, line } = &directive.place;
        if directive.name().ends_with("_by_lua_block") {
            return lexer.pass_block().map(|()| Vec::new());
        }
        if depth.blocks >= limits::NESTING_MAX {
            let message = format!(
                "too many nested blocks: expected at most {}",
                limits::NESTING_MAX
            );
            return Err(InputError::at(file, *line, message));
        }
        let deeper = Depth {
            blocks: depth.blocks + 1,
            ..depth
        };
        self.block(lexer, file, Some(*line), deeper)
    }

    /// The `include` directive itself, followed by the directives of its files.
    fn include(
        &mut self,
        directive: Directive,
        includes: usize,
    ) -> Result<Vec<Directive>, InputError> {
        let name = directive.argument(0).to_owned();
        let Place { file, line } = directive.place.clone();
        if directive.arguments().len() != 1 {
            let message = "include has one argument: expected the name of a file, or a pattern such as conf.d/*.conf";
            return Err(InputError::at(&file, line, message));
        }
        if includes >= limits::INCLUDES_MAX {
            let message = format!(
                "too many nested includes: expected at most {}",
                limits::INCLUDES_MAX
            );
            return Err(InputError::at(&file, line, message));
        }
        let paths = match is_pattern(&name) {
            true => self.matching(&name),
            false => vec![self.directory.join(&name)],
        };
        let mut directives = Vec::new();
        self.notes.carried(&directive);
        for path in paths {
            match self.open(&path) {
                Ok(text) => directives.extend(self.file(&path, &text, includes + 1)?),
                Err(_) if is_types(&name) => self
                    .notes
                    .without_effect(&directive, "Onrush has its own table of media types"),
                Err(why) => {
                    let why = format!("cannot read {}: {why}", path.display());
                    self.notes.left_out(&directive, why);
                }
            }
        }
        directives.insert(0, directive);
        Ok(directives)
    }

    /// The files that match a pattern; none if the directory cannot be read.
    fn matching(&self, pattern: &str) -> Vec<PathBuf> {
        let list = |directory: &Path| {
            let names = self.files.list(directory).into_iter();
            Ok::<_, Infallible>(names.map(OsString::from).collect())
        };
        matching(&self.directory, pattern, list).unwrap_or_else(|never| match never {})
    }
}

fn is_types(name: &str) -> bool {
    name.rsplit('/').next() == Some("mime.types")
}
