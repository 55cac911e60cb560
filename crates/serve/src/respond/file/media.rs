//! Media types: what kind of content a file has, by its name.

use std::path::Path;

/// The media type of a file of this name. Text is said to be UTF-8; what is unknown is bytes.
pub(crate) fn media_type(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let guess = mime_guess::from_path(Path::new(&*name)).first_raw();
    match guess {
        // The registry we use lags behind RFC 9239 in the extension .mjs; browsers run both.
        Some("application/javascript") => "text/javascript; charset=utf-8".to_owned(),
        // HTML and friends without a charset are guessed at by browsers, in ways that have been exploited.
        Some(text) if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        Some(other) => other.to_owned(),
        None => "application/octet-stream".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides_and_text_is_utf_8() {
        for (name, media) in [
            ("index.html", "text/html; charset=utf-8"),
            ("INDEX.HTM", "text/html; charset=utf-8"),
            ("a/b.css", "text/css; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("notes.txt", "text/plain; charset=utf-8"),
            ("data.json", "application/json"),
            ("code.wasm", "application/wasm"),
            ("picture.png", "image/png"),
            ("drawing.svg", "image/svg+xml"),
            ("font.woff2", "font/woff2"),
            ("film.mp4", "video/mp4"),
            ("archive.tar.gz", "application/gzip"),
            ("noextension", "application/octet-stream"),
            ("a.b/noextension", "application/octet-stream"),
            (".html", "application/octet-stream"),
            ("odd.unknownthing", "application/octet-stream"),
        ] {
            assert_eq!(media_type(name.as_bytes()), media, "{name}");
        }
        assert_eq!(media_type(b"caf\xe9.html"), "text/html; charset=utf-8");
    }
}
