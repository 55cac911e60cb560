//! Settings that nginx takes from the default server of an address, so each needs its own sites.

use super::*;

/// Settings of the `http` block, each with the sites to compare.
const SETTINGS: [(&str, &[Site]); 4] = [
    (
        "",
        &[
            Site {
                lines: FIELD,
                fields: &[],
                requests: &[
                    ("GET /\nA-B: 1", Same),
                    ("GET /\nA_B: 1", Same),
                    ("GET /\nA.B: 1", Same),
                    ("GET /\nA_B: 1\nA-B: 2", Same),
                ],
            },
            Site {
                lines: VALUES,
                fields: &[],
                requests: &[
                    ("GET /?x=1&x=2", Same),
                    ("GET /?x=2&x=1", Status("403", "any of several may match")),
                    ("GET /?a=2;x=1", Same),
                    ("GET /?x=2&xx=1", Same),
                    ("GET /?X=1", Same),
                    ("GET /\nCookie: x=1; x=2", Same),
                    (
                        "GET /\nCookie: x=2; x=1",
                        Status("403", "any of several cookies with this name may match"),
                    ),
                    ("GET /\nCookie: X=1", Same),
                    ("GET /\nCookie: xx=1, x=2", Same),
                ],
            },
        ],
    ),
    (
        "underscores_in_headers on;",
        &[Site {
            lines: FIELD,
            fields: &[],
            requests: &[
                ("GET /\nA-B: 1", Same),
                ("GET /\nA_B: 1", Same),
                ("GET /\nA.B: 1", Same),
                ("GET /", Same),
            ],
        }],
    ),
    (
        "ignore_invalid_headers off;",
        &[Site {
            lines: FIELD,
            fields: &[],
            requests: &[("GET /\nA_B: 1", Same), ("GET /\nA.B: 1", Same)],
        }],
    ),
    (
        "merge_slashes off;",
        &[Site {
            lines: SLASHES,
            fields: &[],
            requests: &[
                ("GET //admin/a", Same),
                ("GET /admin/a", Status("403", "without empty segments")),
                ("GET //re", Same),
                ("GET /pub//b", Same),
                ("GET //open", Content("repeated slashes")),
            ],
        }],
    ),
];

const FIELD: &str = "if ($http_a_b = 1) { return 403; } return 200;";

const VALUES: &str =
    "if ($arg_x = 1) { return 403; } if ($cookie_x = 1) { return 403; } return 200;";

const SLASHES: &str = "location //admin/ { deny all; } location ~ ^//re { deny all; } location /pub/ { return 200 pub; } location /open { return 200 open; } location / { return 200 other; }";

#[test]
#[ignore = "foreign programs: make test-all"]
fn default_server_settings_differ_only_as_noted() {
    for (setting, sites) in SETTINGS {
        let (directory, port) = (tempfile::tempdir().expect("a directory"), free_port());
        let servers = sites.iter().enumerate().map(|(at, site)| {
            format!(
                "server {{ listen 127.0.0.1:{port}; server_name {}; {} }}\n",
                name(at),
                site.lines
            )
        });
        let text = format!("{setting}\n{}", servers.collect::<String>());
        let program = start_nginx(directory.path(), &text);
        let ports = vec![port; sites.len()];
        compare(program, &ports, "nginx", &directory, sites);
    }
}
