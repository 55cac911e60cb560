//! Media types of files, by name.

use std::ffi::OsStr;
use std::path::Path;

/// Types for which the list of `mime_guess` is older than the IANA registry
/// (<https://www.iana.org/assignments/media-types>) or has another use of the extension.
const TYPE_OVERRIDES: &[(&str, &str)] = &[
    ("br", "application/x-brotli"),
    // RFC 8949.
    ("cbor", "application/cbor"),
    // RFC 9239 for scripts.
    ("cjs", "text/javascript"),
    ("mjs", "text/javascript"),
    // RFC 8216 for playlists and segments of HTTP Live Streaming, RFC 6381 for MPEG-DASH.
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4s", "video/iso.segment"),
    ("ts", "video/mp2t"),
    // RFC 4337.
    ("m4a", "audio/mp4"),
    ("m4v", "video/mp4"),
    // ECMA-426, source maps.
    ("map", "application/json"),
    ("mid", "audio/midi"),
    // RFC 8081 for fonts.
    ("otf", "font/otf"),
    ("woff", "font/woff"),
    ("pb", "application/protobuf"),
    ("rpm", "application/x-rpm"),
    ("sqlite3", "application/vnd.sqlite3"),
    // RFC 6713.
    ("tgz", "application/gzip"),
    ("toml", "application/toml"),
    ("usdz", "model/vnd.usdz+zip"),
    // RFC 6350.
    ("vcf", "text/vcard"),
    // RFC 9512.
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    // RFC 8878.
    ("zst", "application/zstd"),
];

/// The media type of a file of this name. Text types get `charset=utf-8`; unknown types are `application/octet-stream`.
pub(crate) fn media_type(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let path = Path::new(&*name);
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or("");
    let kept = TYPE_OVERRIDES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(extension));
    let guess = match kept {
        Some((_, media)) => Some(*media),
        None => mime_guess::from_ext(extension).first_raw(),
    };
    match guess {
        // Without a charset browsers guess it, in ways that have been exploited.
        Some(text) if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        Some(other) => other.to_owned(),
        None => "application/octet-stream".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_is_determined_by_extension() {
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
            ("segment.ts", "video/mp2t"),
            ("list.m3u8", "application/vnd.apple.mpegurl"),
            ("LIST.M3U8", "application/vnd.apple.mpegurl"),
            ("segment.m4s", "video/iso.segment"),
            ("font.otf", "font/otf"),
            ("font.ttf", "font/ttf"),
            ("log.zst", "application/zstd"),
            ("api.yaml", "application/yaml"),
            ("api.yml", "application/yaml"),
            ("app.js.map", "application/json"),
            ("site.webmanifest", "application/manifest+json"),
            ("picture.avif", "image/avif"),
            ("README.md", "text/markdown; charset=utf-8"),
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
