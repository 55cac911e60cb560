//! Writes the charts of the page as separate files for slides and documents.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use onrush_file::Output;

use crate::error::Error;
use crate::options::SVG_CONVERTER;

const DIRECTORY: &str = "charts";
/// Scale factor of PNG files, sharp enough for slides.
const ZOOM: &str = "3";
/// Maximum length of the title in a file name, in characters.
const NAME_MAX: usize = 80;

/// Writes each chart of `page` as `charts/NNN-title.svg`, in the order of the page. Removes the charts of an earlier
/// result.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write(out: &Path, page: &str) -> Result<(), Error> {
    let directory = out.join(DIRECTORY);
    remove_earlier(&directory);
    let charts = onrush_chart::charts(page);
    if charts.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(&directory).map_err(|source| Error::Write(directory.clone(), source))?;
    for (index, (title, svg)) in charts.iter().enumerate() {
        let path = directory.join(format!("{:03}-{}.svg", index + 1, plain(title)));
        let file = Output::new_nofollow(&path);
        let written = file.and_then(|file| file.write(|writer| writer.write_all(svg.as_bytes())));
        written.map_err(|source| Error::Write(path, source))?;
    }
    Ok(())
}

/// Converts each chart written by [`write`] to a PNG with the same name.
///
/// # Errors
/// If the converter fails.
pub(super) fn draw(out: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(out.join(DIRECTORY))
        .into_iter()
        .flatten()
        .flatten();
    for svg in entries.map(|entry| entry.path()) {
        let name = svg.file_name().unwrap_or_default().to_string_lossy();
        if !is_ours(&name) || !name.ends_with(".svg") {
            continue;
        }
        let png = svg.with_extension("png");
        let drawn = Command::new(SVG_CONVERTER)
            .args(["--zoom", ZOOM, "--output"])
            .args([&png, &svg])
            .stdin(Stdio::null())
            .output();
        let wrong = match drawn {
            Ok(drawn) if drawn.status.success() => continue,
            Ok(drawn) => String::from_utf8_lossy(&drawn.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        let _ = fs::remove_file(&png);
        return Err(Error::ChartConversion(png, wrong));
    }
    Ok(())
}

/// Removes charts of an earlier result. Errors are ignored: a chart that remains is overwritten or has another name.
fn remove_earlier(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if is_ours(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    // Fails if the directory contains other files, which is intended.
    let _ = fs::remove_dir(directory);
}

fn is_ours(name: &str) -> bool {
    let number = name.split('-').next().unwrap_or_default();
    let is_number = number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (name.ends_with(".svg") || name.ends_with(".png"))
}

fn plain(title: &str) -> String {
    let mut name = String::new();
    for letter in title.to_lowercase().chars().take(NAME_MAX) {
        match letter {
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_are_written_and_old_ones_removed() {
        let out = tempfile::tempdir().expect("a directory");
        let chart =
            |title: &str| format!("<svg class=\"chart\" x=\"1\"><title>{title}</title></svg>");
        write(out.path(), &[chart("A: b & c"), chart("d")].concat()).expect("written");
        let directory = out.path().join("charts");
        fs::write(directory.join("mine.svg"), "x").expect("a file");
        write(out.path(), &chart("Latency · io=a")).expect("written");
        let mut names: Vec<String> = fs::read_dir(&directory)
            .expect("it is there")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        assert_eq!(names, ["001-latency-io-a.svg", "mine.svg"]);
    }
}
