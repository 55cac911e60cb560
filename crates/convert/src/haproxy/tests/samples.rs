//! Samples match the same values as in HAProxy 2.6, which produced the expected results.

use super::*;

/// Conditions, with field values that fulfil them and field values that do not.
const SAMPLES: [(&str, &[&str], &[&str]); 16] = [
    (
        "hdr_dir(X-T) abc",
        &[
            "abc", "x, abc", "x,abc", "abc/", "/abc", "x/abc/y", "abc?1", "?abc", "abc ,x",
            "x/abc ,y",
        ],
        &[
            "x.abc", "abc.x", "abc:1", "x abc", "xabc", "x,", "ABC", "a,b",
        ],
    ),
    (
        "hdr_dir(X-T) -i abc",
        &[
            "abc", "x, abc", "x,abc", "abc/", "/abc", "x/abc/y", "abc?1", "?abc", "abc ,x", "ABC",
            "x/abc ,y",
        ],
        &["x.abc", "abc.x", "abc:1", "x abc", "xabc", "x,", "a,b"],
    ),
    (
        "hdr_dir(X-T) /abc/",
        &[
            "abc", "x, abc", "x,abc", "abc/", "/abc", "x/abc/y", "abc?1", "?abc", "abc ,x",
            "x/abc ,y",
        ],
        &[
            "x.abc", "abc.x", "abc:1", "x abc", "xabc", "x,", "ABC", "a,b",
        ],
    ),
    (
        "hdr_dom(X-T) abc",
        &[
            "abc", "x, abc", "x,abc", "abc/", "/abc", "x/abc/y", "x.abc", "abc.x", "abc:1",
            "abc?1", "?abc", "abc ,x", "x/abc ,y",
        ],
        &["x abc", "xabc", "x,", "ABC", "a,b"],
    ),
    (
        "hdr_dom(X-T) :abc.",
        &[
            "abc", "x, abc", "x,abc", "abc/", "/abc", "x/abc/y", "x.abc", "abc.x", "abc:1",
            "abc?1", "?abc", "abc ,x", "x/abc ,y",
        ],
        &["x abc", "xabc", "x,", "ABC", "a,b"],
    ),
    (
        "hdr(X-T) abc",
        &["abc", "x, abc", "x,abc", "abc ,x"],
        &[
            "abc/", "/abc", "x/abc/y", "x.abc", "abc.x", "abc:1", "abc?1", "?abc", "x abc", "xabc",
            "x,", "ABC", "a,b", "x/abc ,y",
        ],
    ),
    (
        "hdr_beg(X-T) abc",
        &[
            "abc", "x, abc", "x,abc", "abc/", "abc.x", "abc:1", "abc?1", "abc ,x",
        ],
        &[
            "/abc", "x/abc/y", "x.abc", "?abc", "x abc", "xabc", "x,", "ABC", "a,b", "x/abc ,y",
        ],
    ),
    (
        "hdr_end(X-T) abc",
        &[
            "abc", "x, abc", "x,abc", "/abc", "x.abc", "?abc", "x abc", "xabc", "abc ,x",
            "x/abc ,y",
        ],
        &[
            "abc/", "x/abc/y", "abc.x", "abc:1", "abc?1", "x,", "ABC", "a,b",
        ],
    ),
    (
        "hdr_reg(X-T) ^abc$",
        &["abc", "x, abc", "x,abc", "abc ,x"],
        &[
            "abc/", "/abc", "x/abc/y", "x.abc", "abc.x", "abc:1", "abc?1", "?abc", "x abc", "xabc",
            "x,", "ABC", "a,b", "x/abc ,y",
        ],
    ),
    (
        "req.fhdr(X-T) -m dir abc",
        &["abc", "abc/", "/abc", "x/abc/y", "abc?1", "?abc"],
        &[
            "x, abc", "x,abc", "x.abc", "abc.x", "abc:1", "x abc", "xabc", "abc ,x", "x,", "ABC",
            "a,b", "x/abc ,y",
        ],
    ),
    (
        "req.fhdr(X-T) -m dom abc",
        &[
            "abc", "abc/", "/abc", "x/abc/y", "x.abc", "abc.x", "abc:1", "abc?1", "?abc",
        ],
        &[
            "x, abc", "x,abc", "x abc", "xabc", "abc ,x", "x,", "ABC", "a,b", "x/abc ,y",
        ],
    ),
    (
        "hdr_ip(X-T) 10.0.0.1",
        &[
            "10.0.0.1",
            "10.0.0.1:80",
            "x, 10.0.0.1",
            "010.0.0.1",
            "10.0.0.01",
            "::ffff:10.0.0.1",
        ],
        &["[::1]", "::1", "0:0::1", "[::1]:80", "\"10.0.0.1\""],
    ),
    (
        "cook(s) ab",
        &[
            "s=ab",
            "a=1; s=ab",
            "a=1;s=ab",
            "a=1;  s=ab",
            "a=1;\ts=ab",
            "a=1, s=ab",
            "a=1,s=ab",
            "s = ab",
            "s= ab",
            "s=ab ; b=1",
            "s=ab, b=1",
            "s=ab,b",
            "s=x; s=ab",
            "s=ab; s=x",
            "=1; s=ab",
            "a; s=ab",
        ],
        &[
            "s=AB", "s=\"ab\"", "S=ab", "xs=ab", "s", "s=", "s=; a=1", "$s=ab", "s=a b",
        ],
    ),
    (
        "cook(s) -i AB",
        &[
            "s=ab",
            "s=AB",
            "a=1; s=ab",
            "a=1;s=ab",
            "a=1;  s=ab",
            "a=1;\ts=ab",
            "a=1, s=ab",
            "a=1,s=ab",
            "s = ab",
            "s= ab",
            "s=ab ; b=1",
            "s=ab, b=1",
            "s=ab,b",
            "s=x; s=ab",
            "s=ab; s=x",
            "=1; s=ab",
            "a; s=ab",
        ],
        &[
            "s=\"ab\"", "S=ab", "xs=ab", "s", "s=", "s=; a=1", "$s=ab", "s=a b",
        ],
    ),
    (
        "cook(s) -m beg a",
        &[
            "s=ab",
            "a=1; s=ab",
            "a=1;s=ab",
            "a=1;  s=ab",
            "a=1;\ts=ab",
            "a=1, s=ab",
            "a=1,s=ab",
            "s = ab",
            "s= ab",
            "s=ab ; b=1",
            "s=ab, b=1",
            "s=ab,b",
            "s=x; s=ab",
            "s=ab; s=x",
            "=1; s=ab",
            "a; s=ab",
            "s=a b",
        ],
        &[
            "s=AB", "s=\"ab\"", "S=ab", "xs=ab", "s", "s=", "s=; a=1", "$s=ab",
        ],
    ),
    (
        "cook(s) -m found",
        &[
            "s=ab",
            "s=AB",
            "a=1; s=ab",
            "a=1;s=ab",
            "a=1;  s=ab",
            "a=1;\ts=ab",
            "a=1, s=ab",
            "a=1,s=ab",
            "s = ab",
            "s= ab",
            "s=ab ; b=1",
            "s=ab, b=1",
            "s=ab,b",
            "s=\"ab\"",
            "s=x; s=ab",
            "s=ab; s=x",
            "=1; s=ab",
            "a; s=ab",
            "s=; a=1",
            "s=a b",
        ],
        &["S=ab", "xs=ab", "s", "s=", "$s=ab"],
    ),
];

/// The expression in the route of a condition on a field.
fn pattern_of(sample: &str) -> String {
    let text = format!(
        "frontend f\n mode http\n bind :80\n use_backend other if {{ {sample} }}\n default_backend app\n{AROUND}"
    );
    let conversion = converted(&text);
    let lines = lines(&conversion);
    let line = lines.iter().find(|line| line.starts_with("headers = "));
    let (_, pattern) = line.expect(sample).split_once('~').expect(sample);
    let end = pattern.rfind(['"', '\'']).expect(sample);
    let is_literal = line.expect(sample).contains("'~");
    match is_literal {
        true => pattern[..end].to_owned(),
        false => pattern[..end].replace("\\\\", "\\"),
    }
}

#[test]
fn header_samples_match_same_values_as_haproxy() {
    for (sample, held, others) in SAMPLES {
        let pattern = pattern_of(sample);
        let regex = regex::bytes::Regex::new(&pattern).expect(&pattern);
        for value in held {
            assert!(
                regex.is_match(value.as_bytes()),
                "{sample} {value}: {pattern}"
            );
        }
        for value in others {
            assert!(
                !regex.is_match(value.as_bytes()),
                "{sample} {value}: {pattern}"
            );
        }
    }
}

/// The routes of a frontend that refuses requests with this condition.
fn refusing(sample: &str) -> Vec<String> {
    let rule = format!(" http-request deny if {{ method PUT }} {{ {sample} }}");
    let text = format!("frontend f\n mode http\n bind :80\n{rule}\n default_backend app\n{AROUND}");
    let conversion = converted_files(vec![("/h.cfg", text)]);
    let conversion = verified(conversion.expect("it is HAProxy's language"));
    let text = lines(&conversion).join("; ");
    let routes = text.split("[[route]]; ").skip(1);
    routes
        .map(|route| {
            route
                .split("; [upstream")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

#[test]
fn always_present_samples_are_found() {
    let all = "method = \"PUT\"; respond = { status = 403 }; ";
    for sample in [
        "path -m found",
        "url -m found",
        "src -m found",
        "dst_port -m found",
        "ssl_fc -m found",
        "always_false -m found",
        "hdr_cnt(X) -m found",
        "always_true 0",
        "always_false -m int 0",
    ] {
        assert_eq!(refusing(sample), [all, "forward = \"app\""], "{sample}");
    }
}

#[test]
fn unsupported_comparisons_refuse_requests() {
    let all = "method = \"PUT\"; respond = { status = 403 }; ";
    for sample in [
        "path -m int gt 5",
        "path -m bool",
        "hdr(X) -m bool 1",
        "hdr_ip(X) ::1",
        "hdr_ip(X) 10.0.0.0/8",
        "url_param(a) -m ip 10.0.0.1",
        "ssl_fc -m str 1",
        "ssl_fc -m int ge 0",
        "hdr(X) a,b",
        "hdr(X),url_dec -m sub evil",
        "hdr(X),lower ABC",
        "path,upper -m beg /a",
        "path,lower -m reg ^/[!-^]",
        "hdr_dir(X) /",
        "hdr(X) -m reg ^a,b",
        "cook(s) a;b",
        "cook_end(s) a",
        "hdr_cnt(X)",
        "ssl_fc_sni a.org",
        "path_reg ^/(?=a)",
        "path_reg ^/\\xe9",
        "hdr(X) \\xe9",
        "path_beg /\\xe9",
    ] {
        assert_eq!(refusing(sample), [all, "forward = \"app\""], "{sample}");
    }
}
