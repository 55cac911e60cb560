//! Directory listings, as HTML or, if the client prefers it, JSON.

use std::cmp::Ordering;
use std::fmt::Write;
use std::rc::Rc;

use onrush_engine::{Directory, Error, FileKind, Metadata};
use onrush_http::request::RequestHead;
use onrush_http::{Method, accept, date};

use crate::exchange::json;
use crate::exchange::reply::Reply;
use crate::exchange::reply::fields::BodyLength;
use crate::routing::path;

/// Responds with the contents of `directory`, which the request names.
pub(super) fn respond(
    mut directory: Directory,
    above: ParentLink,
    head: &RequestHead<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    directory.entries.sort_unstable_by(compare);
    let (media, body) = match accept::prefers_json(head.headers) {
        true => (&b"application/json"[..], as_json(&directory)),
        false => {
            let name = path::normalize(head.path).unwrap_or_default();
            let name = String::from_utf8_lossy(&name);
            (
                &b"text/html; charset=utf-8"[..],
                as_page(&name, above, &directory),
            )
        }
    };
    reply.head(200, |head| {
        head.header("Content-Type", media)
            .header("Vary", b"Accept")
            .length(BodyLength::Known(body.len() as u64));
    })?;
    if reply.method == Method::Head {
        return Ok(());
    }
    let body: Rc<[u8]> = body.into_bytes().into();
    reply.part(body.into())
}

/// Whether there is a parent directory to link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ParentLink {
    Directory,
    /// The directory is the route's root.
    Nothing,
}

/// Directories first, then by name.
fn compare(one: &(Vec<u8>, Metadata), other: &(Vec<u8>, Metadata)) -> Ordering {
    let is_file = |metadata: &Metadata| metadata.kind != FileKind::Directory;
    (is_file(&one.1), &one.0).cmp(&(is_file(&other.1), &other.0))
}

/// The JSON format of nginx's autoindex: an array of objects.
fn as_json(directory: &Directory) -> String {
    let mut out = String::from("[");
    for (at, (name, metadata)) in directory.entries.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str("{\"name\":");
        json::push_string(&String::from_utf8_lossy(name), &mut out);
        let kind = match metadata.kind {
            FileKind::Directory => "directory",
            FileKind::Regular | FileKind::Other => "file",
        };
        write!(out, ",\"type\":\"{kind}\"").expect(ENDLESS);
        if let Some(date) = modified(metadata) {
            write!(out, ",\"mtime\":\"{date}\"").expect(ENDLESS);
        }
        if metadata.kind == FileKind::Regular {
            write!(out, ",\"size\":{}", metadata.length).expect(ENDLESS);
        }
        out.push('}');
    }
    out.push_str("\n]\n");
    out
}

const ENDLESS: &str = "a String takes everything";

/// An HTML page. Names are escaped.
fn as_page(path: &str, above: ParentLink, directory: &Directory) -> String {
    let mut title = String::new();
    push_escaped(path, &mut title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Index of {title}</title>\n\
         <style>body{{font-family:sans-serif}}td,th{{padding:.1em 1em;text-align:left}}\
         td+td{{text-align:right}}</style>\n</head>\n<body>\n<h1>Index of {title}</h1>\n<table>\n\
         <tr><th>Name</th><th>Size</th><th>Modified</th></tr>\n"
    );
    if above == ParentLink::Directory {
        out.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for (name, metadata) in &directory.entries {
        let slash = match metadata.kind {
            FileKind::Directory => "/",
            FileKind::Regular | FileKind::Other => "",
        };
        // `./` keeps a name with a colon from being parsed as a scheme.
        out.push_str("<tr><td><a href=\"./");
        push_encoded(name, &mut out);
        write!(out, "{slash}\">").expect(ENDLESS);
        push_escaped(&String::from_utf8_lossy(name), &mut out);
        write!(out, "{slash}</a></td><td>").expect(ENDLESS);
        if metadata.kind == FileKind::Regular {
            write!(out, "{}", metadata.length).expect(ENDLESS);
        }
        let date = modified(metadata).unwrap_or_default();
        writeln!(out, "</td><td>{date}</td></tr>").expect(ENDLESS);
    }
    out.push_str("</table>\n");
    if directory.is_cut {
        out.push_str("<p>This list is incomplete: the directory has more entries.</p>\n");
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// The modification time, if it can be formatted.
fn modified(metadata: &Metadata) -> Option<String> {
    /// The last second of the year 9999: a date has four digits for the year.
    const LAST: u64 = 253_402_300_799;
    let seconds = u64::try_from(metadata.modified_seconds).ok();
    let seconds = seconds.filter(|seconds| *seconds <= LAST)?;
    Some(String::from_utf8_lossy(&date::format(seconds)).into_owned())
}

/// Appends text with HTML escapes.
fn push_escaped(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
}

/// Appends a path segment (RFC 3986 3.3), percent-encoding all but unreserved characters.
fn push_encoded(name: &[u8], out: &mut String) {
    for &byte in name {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => write!(out, "%{byte:02X}").expect(ENDLESS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(kind: FileKind) -> Metadata {
        Metadata {
            kind,
            length: 16,
            modified_seconds: 784_111_777,
            modified_nanoseconds: 0,
            identity: (1, 2),
            changed: (5, 5),
        }
    }

    fn directory(names: &[&[u8]]) -> Directory {
        let kind = |name: &[u8]| match name.ends_with(b"/") {
            true => FileKind::Directory,
            false => FileKind::Regular,
        };
        let entry = |name: &&[u8]| {
            let plain = name.strip_suffix(b"/").unwrap_or(name);
            (plain.to_vec(), metadata(kind(name)))
        };
        Directory {
            entries: names.iter().map(entry).collect(),
            is_cut: false,
        }
    }

    #[test]
    fn directories_are_listed_first() {
        let mut found = directory(&[b"b", b"z/", b"B", b"a/", b"\xff", b"10"]);
        found.entries.sort_unstable_by(compare);
        let names: Vec<&[u8]> = found.entries.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(names, [&b"a"[..], b"z", b"10", b"B", b"b", b"\xff"]);
    }

    #[test]
    fn file_names_in_listing_are_escaped() {
        let page = as_page(
            "/<a>/",
            ParentLink::Nothing,
            &directory(&[
                b"<script>alert('1')&\"",
                b"javascript:x",
                b"a b?#%/",
                b"caf\xe9",
            ]),
        );
        assert!(
            page.contains("<title>Index of /&lt;a&gt;/</title>"),
            "{page}"
        );
        for row in [
            "<a href=\"./%3Cscript%3Ealert%28%271%27%29%26%22\">&lt;script&gt;alert(&#39;1&#39;)&amp;&quot;</a>",
            "<a href=\"./javascript%3Ax\">javascript:x</a></td><td>16</td><td>Sun, 06 Nov 1994 08:49:37 GMT</td>",
            "<a href=\"./a%20b%3F%23%25/\">a b?#%/</a></td><td></td>",
            "<a href=\"./caf%E9\">caf\u{fffd}</a>",
        ] {
            assert!(page.contains(row), "{row} in {page}");
        }
        assert!(!page.contains("../"), "{page}");
    }

    #[test]
    fn json_listing_has_entry_types() {
        assert_eq!(
            as_json(&directory(&[b"a/", b"\"b\""])),
            "[\n{\"name\":\"a\",\"type\":\"directory\",\"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\"},\n\
             {\"name\":\"\\\"b\\\"\",\"type\":\"file\",\"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\",\"size\":16}\n]\n"
        );
        assert_eq!(as_json(&Directory::default()), "[\n]\n");
    }

    #[test]
    fn unrepresentable_mtime_is_omitted_from_listing() {
        for seconds in [-1, i64::MAX] {
            let odd = Metadata {
                modified_seconds: seconds,
                ..metadata(FileKind::Regular)
            };
            assert_eq!(modified(&odd), None);
        }
    }
}
