//! Edits of responses are applied before compression: edited fields count like fields of the server, and fields set by
//! compression stay.

use onrush_config::plan::{FieldEdits, Piece, Template, Variable};
use onrush_http::Method;
use onrush_http::encoding::Coding;

use super::super::edits::{edits, text as template};
use super::{fixed, received_with, request, sized, text};
use crate::testing::harness::exchange;
use crate::worker::compress::decode::Received;

const GZIP: Option<Coding> = Some(Coding::Gzip);

/// The client's response from a server with these fields.
fn forwarded(edits: &FieldEdits, fields: &str) -> Received {
    let request = request("GET", "Accept-Encoding: gzip\r\n");
    let response = sized(fields, &text(500));
    let change = |plan: &mut onrush_config::Plan| plan.routes[0].edits.response = edits.clone();
    received_with(&change, Method::Get, &request, &[response]).remove(0)
}

fn responded(edits: &FieldEdits, fields: &[(&str, &str)]) -> Received {
    let mut plan = fixed(200, fields, &text(500));
    plan.routes[0].edits.response = edits.clone();
    let bytes = exchange(
        &plan,
        request("GET", "Accept-Encoding: gzip\r\n").as_bytes(),
    );
    Received::all(&bytes, Method::Get).remove(0)
}

#[test]
fn edited_content_type_decides_compression() {
    let set = |name: &str, value: &str| edits(&[], &[(name, template(value))], &[]);
    let tag = Template(vec![
        Piece::Text("\"".into()),
        Piece::Variable(Variable::Path),
        Piece::Text("\"".into()),
    ]);
    let html = "Content-Type: text/html\r\n";
    for (edits, fields, coding) in [
        (set("Cache-Control", "max-age=60, no-transform"), html, None),
        (
            edits(&[], &[], &[("Cache-Control", template("no-transform"))]),
            html,
            None,
        ),
        (set("Cache-Control", "max-age=60"), html, GZIP),
        (set("Repr-Digest", "sha-256=:x:"), html, None),
        (set("Content-Type", "image/png"), html, None),
        (
            set("Content-Type", "text/html"),
            "Content-Type: image/png\r\n",
            GZIP,
        ),
        (set("Content-Type", "text/html"), "", GZIP),
        (set("ETag", "\"1\""), html, None),
        (set("ETag", "W/\"1\""), html, GZIP),
        (edits(&[], &[("ETag", tag)], &[]), html, None),
    ] {
        let received = forwarded(&edits, fields);
        assert_eq!(received.coding(), coding, "{edits:?}");
        assert_eq!(received.content(), text(500), "{edits:?}");
        if !fields.is_empty() {
            let media = fields.trim_end().split_once(": ").expect("a field").1;
            let own = responded(&edits, &[("Content-Type", media)]);
            assert_eq!(own.coding(), coding, "{edits:?}");
            assert_eq!(own.content(), text(500), "{edits:?}");
        }
    }
}

#[test]
fn edited_content_encoding_prevents_compression() {
    let edits = edits(&[], &[("Content-Encoding", template("br"))], &[]);
    let received = forwarded(&edits, "Content-Type: text/html\r\n");
    assert_eq!(received.field("content-encoding"), ["br"]);
    assert_eq!(received.body, text(500));
    assert_eq!(responded(&edits, &[]).body, text(500));
}

#[test]
fn server_no_transform_applies_despite_edits() {
    let edits = edits(&["Cache-Control", "Content-Encoding"], &[], &[]);
    for said in ["Cache-Control: no-transform", "Content-Encoding: br"] {
        let received = forwarded(&edits, &format!("Content-Type: text/html\r\n{said}\r\n"));
        assert_eq!(received.body, text(500), "{said}");
    }
}

#[test]
fn compression_headers_cannot_be_edited() {
    let vary = ("Vary", template("Origin"));
    for (edits, other) in [
        (edits(&["Vary", "Content-Encoding"], &[], &[]), None),
        (edits(&[], std::slice::from_ref(&vary), &[]), Some("Origin")),
        (edits(&[], &[], std::slice::from_ref(&vary)), Some("Origin")),
    ] {
        let received = [
            forwarded(
                &edits,
                "Content-Type: text/html\r\nVary: Accept-Encoding\r\n",
            ),
            responded(&edits, &[]),
        ];
        for received in received {
            assert_eq!(received.coding(), GZIP, "{edits:?}");
            assert_eq!(received.content(), text(500));
            let said: Vec<_> = ["Accept-Encoding"].into_iter().chain(other).collect();
            assert_eq!(received.field("vary"), said, "{edits:?}");
        }
    }
}
