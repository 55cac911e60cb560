//! Sites of nginx whose listeners expect a PROXY header.

use super::*;

/// Sites on a port of their own, with and without `real_ip_header`.
const LISTENERS: &[Site] = &[
    Site {
        lines: "location / { proxy_pass http://app; proxy_set_header X-A $remote_addr; } location /in/ { allow 127.0.0.0/8; deny all; alias $FILES/www/; } location /if/ { if ($remote_addr = 192.0.2.1) { return 403; } alias $FILES/www/; } location /geo/ { if ($staff = 0) { return 403; } alias $FILES/www/; }",
        fields: &["x-a"],
        requests: &[
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /",
                Content("nginx uses the address of the connection"),
            ),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /in/a.html",
                Status(
                    "501",
                    "Onrush uses the client address in the PROXY header, and nginx another one",
                ),
            ),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /if/a.html",
                Status(
                    "403",
                    "Onrush uses the client address in the PROXY header, and nginx another one",
                ),
            ),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /geo/a.html",
                Same,
            ),
            ("PROXY UNKNOWN\nGET /", Same),
            ("GET /", Same),
        ],
    },
    Site {
        lines: "real_ip_header proxy_protocol; set_real_ip_from 127.0.0.0/8; location / { proxy_pass http://app; proxy_set_header X-A $remote_addr; } location /q { proxy_pass http://app; proxy_set_header X-A $realip_remote_addr; proxy_set_header X-B $proxy_protocol_addr; } location /in/ { allow 192.0.2.0/24; deny all; alias $FILES/www/; } location /if/ { if ($remote_addr = 192.0.2.7) { return 403; } alias $FILES/www/; } location /geo/ { if ($staff = 0) { return 403; } alias $FILES/www/; }",
        fields: &["x-a", "x-b"],
        requests: &[
            ("PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /", Same),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /q\nX-A: theirs\nX-B: theirs",
                Content("Onrush has no equivalent for $proxy_protocol_addr; the field is removed"),
            ),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /in/a.html",
                Same,
            ),
            (
                "PROXY TCP4 198.51.100.7 192.0.2.1 1111 80\nGET /in/a.html",
                Same,
            ),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /if/a.html",
                Same,
            ),
            (
                "PROXY TCP4 192.0.2.8 192.0.2.1 1111 80\nGET /if/a.html",
                Same,
            ),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /geo/a.html",
                Same,
            ),
            (
                "PROXY TCP4 198.51.100.7 192.0.2.1 1111 80\nGET /geo/a.html",
                Same,
            ),
            ("PROXY UNKNOWN\nGET /", Same),
            ("GET /", Same),
        ],
    },
    Site {
        lines: "real_ip_header proxy_protocol; set_real_ip_from 10.0.0.0/8; root $FILES/www;",
        fields: &[],
        requests: &[
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /a.html",
                Status("400", "nginx expects one on every connection"),
            ),
            (
                "GET /a.html",
                Status("200", "nginx expects one on every connection"),
            ),
        ],
    },
    Site {
        lines: "real_ip_header proxy_protocol; location / { proxy_pass http://app; proxy_set_header X-A $remote_addr; } location /in/ { allow 127.0.0.0/8; deny all; alias $FILES/www/; }",
        fields: &["x-a"],
        requests: &[
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /",
                Content("nginx uses the address of the connection"),
            ),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /in/a.html",
                Status(
                    "501",
                    "Onrush uses the client address in the PROXY header, and nginx another one",
                ),
            ),
        ],
    },
    Site {
        lines: "real_ip_header X-Forwarded-For; set_real_ip_from 127.0.0.0/8; location / { proxy_pass http://app; proxy_set_header X-A $remote_addr; } location /in/ { allow 203.0.113.0/24; deny all; alias $FILES/www/; }",
        fields: &["x-a"],
        requests: &[
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /\nX-Forwarded-For: 203.0.113.9",
                Content("the client address comes from the PROXY header"),
            ),
            (
                "PROXY TCP4 192.0.2.7 192.0.2.1 1111 80\nGET /in/a.html\nX-Forwarded-For: 203.0.113.9",
                Status(
                    "501",
                    "Onrush uses the client address in the PROXY header, and nginx another one",
                ),
            ),
        ],
    },
];

#[test]
#[ignore = "foreign programs: make test-all"]
fn proxy_protocol_listeners_differ_only_as_noted() {
    // Servers that trust X-Forwarded-For would block requests under the address rules of others.
    let (own, others) = LISTENERS.split_at(4);
    compare_listeners(own);
    compare_listeners(others);
}

fn compare_listeners(sites: &[Site]) {
    let directory = tempfile::tempdir().expect("a directory");
    let application = Application::start("app");
    let ports: Vec<u16> = sites.iter().map(|_| free_port()).collect();
    let servers = sites.iter().zip(&ports).map(|(site, port)| {
        format!(
            "server {{ listen 127.0.0.1:{port} proxy_protocol; {} }}\n",
            site.lines
        )
    });
    let servers: String = servers.collect();
    let text = format!(
        "upstream app {{ server {}; }}\ngeo $staff {{ default 0; 192.0.2.0/24 1; }}\n{servers}",
        application.address
    );
    let program = start_nginx(directory.path(), &text);
    compare(program, &ports, "nginx", &directory, sites);
}
