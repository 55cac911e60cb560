//! Files that are made of earlier results, looked at before those are read.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use onrush_file::Output;

use crate::terminal::{Out, write_raw};

/// Where each form goes, under its flag.
pub(super) struct Written(Vec<(&'static str, Place)>);

enum Place {
    /// `-`: standard output; what people read then goes to standard error.
    Standard,
    File(Output),
}

impl Written {
    /// Looks at the files of `wanted`, each with its flag.
    ///
    /// # Errors
    /// When one cannot be written, two are one, or one of them is among `inputs`.
    pub(super) fn open(
        wanted: &[(&'static str, Option<&Path>)],
        inputs: &[PathBuf],
    ) -> anyhow::Result<Written> {
        let mut opened: Vec<(&'static str, Place)> = Vec::new();
        for (flag, path) in wanted {
            let Some(path) = path else {
                continue;
            };
            let is_standard = *path == Path::new("-");
            let is_same = |place: &Place| match place {
                Place::Standard => is_standard,
                Place::File(file) => !is_standard && file.is_same(path),
            };
            let shown = path.display();
            if let Some((other, _)) = opened.iter().find(|(_, place)| is_same(place)) {
                bail!("{other} and {flag} would both write {shown}: give each a file of its own");
            }
            if is_standard {
                opened.push((flag, Place::Standard));
                continue;
            }
            let file = Output::new(path).with_context(|| format!("cannot write {shown}"))?;
            if let Some(input) = inputs.iter().find(|input| file.is_same(input)) {
                let input = input.display();
                bail!("{flag} would overwrite {input}, which is read: name another file");
            }
            opened.push((flag, Place::File(file)));
        }
        Ok(Written(opened))
    }

    /// Where people read.
    pub(super) fn out(&self) -> Out {
        let mut places = self.0.iter().map(|(_, place)| place);
        match places.any(|place| matches!(place, Place::Standard)) {
            true => Out::error(),
            false => Out::standard(),
        }
    }

    /// Writes what `content` has for each flag.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn write(self, content: impl Fn(&str) -> String) -> anyhow::Result<()> {
        for (flag, place) in self.0 {
            let text = content(flag);
            match place {
                Place::Standard => write_raw(text.as_bytes()),
                Place::File(file) => {
                    let path = file.path().to_owned();
                    file.write(|writer| writer.write_all(text.as_bytes()))
                        .with_context(|| format!("cannot write {}", path.display()))?;
                }
            }
        }
        Ok(())
    }
}

/// Shows what people read.
pub(super) fn show(mut out: Out, text: &str) {
    // What could not be said is an exit code of the program.
    let _ = out.write_all(text.as_bytes());
}
