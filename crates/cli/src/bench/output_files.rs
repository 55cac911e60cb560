//! Output files of the subcommands that read earlier results; opened before the results are read.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use onrush_file::Output;

use crate::terminal::{Out, write_raw};

/// Destination of each output, with its flag.
pub(super) struct OutputFiles(Vec<(&'static str, Place)>);

enum Place {
    /// `-`: standard output; text for people then goes to standard error.
    Standard,
    File(Output),
}

impl OutputFiles {
    /// Opens the files of `wanted`, each named with its flag.
    ///
    /// # Errors
    /// When a file cannot be written, two flags name the same file, or a file is one of `inputs`.
    pub(super) fn open(
        wanted: &[(&'static str, Option<&Path>)],
        inputs: &[PathBuf],
    ) -> anyhow::Result<OutputFiles> {
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
                bail!("{flag} would overwrite the input {input}: name another file");
            }
            opened.push((flag, Place::File(file)));
        }
        Ok(OutputFiles(opened))
    }

    /// Stream for text that people read.
    pub(super) fn out(&self) -> Out {
        let mut places = self.0.iter().map(|(_, place)| place);
        match places.any(|place| matches!(place, Place::Standard)) {
            true => Out::error(),
            false => Out::standard(),
        }
    }

    /// Writes `content` of each flag to its file.
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

pub(super) fn show(mut out: Out, text: &str) {
    // Ignore the error: the exit code reports the result.
    let _ = out.write_all(text.as_bytes());
}
