//! Sites of HAProxy.

use super::{Content, Same, Site, Status};

pub(super) const HAPROXY: &[Site] = &[
    Site {
        lines: "http-send-name-header X-Name\n server only $A",
        fields: &["x-name"],
        requests: &[("GET /\nX-Name: theirs", Same)],
    },
    Site {
        lines: "cookie SRV insert nocache indirect\n server one $A cookie one",
        fields: &["set-cookie", "cache-control", "cookie"],
        requests: &[
            (
                "GET /",
                Content("responses that set the cookie have no Cache-Control: private"),
            ),
            (
                "GET /\nCookie: SRV=one",
                Content("the cookie is forwarded to servers"),
            ),
        ],
    },
    Site {
        lines: "cookie SRV insert domain example\n server one $A cookie one",
        fields: &["set-cookie"],
        requests: &[("GET /", Content("the cookie is only valid for the host"))],
    },
    Site {
        lines: "http-request redirect code 301 prefix /new drop-query append-slash if { path_beg /slash }\n server one $A",
        fields: &["location"],
        requests: &[("GET /slash", Same), ("GET /slash/?x=1", Same)],
    },
    Site {
        lines: "http-request set-header X-A \"${HOME}\"\n http-request set-header X-B \"${UNSET_NAME-5s}\"\n server one $A",
        fields: &["x-a", "x-b"],
        requests: &[("GET /", Same)],
    },
    Site {
        lines: "http-request set-header X-A %[unique-id]\n server one $A",
        fields: &["x-a"],
        requests: &[(
            "GET /\nX-A: theirs",
            Content("has 32 hexadecimal digits; in HAProxy it has the format"),
        )],
    },
    Site {
        lines: "option http-restrict-req-hdr-names delete\n server one $A",
        fields: &["x_a"],
        requests: &[(
            "GET /\nX_A: 1",
            Content("fields with characters other than letters"),
        )],
    },
    Site {
        lines: "compression algo gzip\n compression type text/plain\n http-request return status 200 content-type text/plain string small if { path /small }\n server one $A",
        fields: &["content-encoding"],
        requests: &[("GET /x\nAccept-Encoding: gzip", Same)],
    },
    Site {
        lines: "http-send-name-header X-Name\n server one $A\n server two 127.0.0.1:9 backup",
        fields: &["x-name"],
        requests: &[(
            "GET /\nX-Name: theirs",
            Content("all servers of a group get the same request"),
        )],
    },
    Site {
        lines: "cookie SRV insert nocache indirect domain example\n server one $A cookie one",
        fields: &["set-cookie", "cache-control", "cookie"],
        requests: &[
            ("GET /", Content("the cookie is only valid for the host")),
            (
                "GET /\nCookie: SRV=one",
                Content("the cookie is forwarded to servers"),
            ),
        ],
    },
    Site {
        lines: "cookie SRV insert\n server one $A",
        fields: &["set-cookie"],
        requests: &[("GET /", Content("servers without a cookie value"))],
    },
    Site {
        lines: "redirect prefix /new code 301 append-slash if { path_beg /prefix }\n redirect scheme https append-slash if { path_beg /scheme }\n redirect location /new append-slash if { path_beg /location }\n server one $A",
        fields: &["location"],
        requests: &[
            ("GET /prefix", Same),
            (
                "GET /prefix/?x=1",
                Content("no slash is added after a query"),
            ),
            ("GET /scheme", Same),
            ("GET /scheme?x=1", Same),
            ("GET /location", Same),
        ],
    },
    Site {
        lines: "http-request set-header X-A \"$HOME\"\n http-request set-header X-B \"a${HOME}b\"\n http-request set-header X-C \"\\${HOME}\"\n http-request set-header X-D '${HOME}'\n http-request set-header X-E ${HOME}\n server one $A",
        fields: &["x-a", "x-b", "x-c", "x-d", "x-e"],
        requests: &[("GET /", Same)],
    },
    Site {
        lines: "server one $A",
        fields: &["x-unique", "x_a"],
        requests: &[("GET /", Content("32 hexadecimal digits"))],
    },
    Site {
        lines: "option http-restrict-req-hdr-names reject\n server one $A",
        fields: &["x_a"],
        requests: &[(
            "GET /\nX_A: 1",
            Status("200", "fields with characters other than letters"),
        )],
    },
    Site {
        lines: "compression algo gzip\n compression type text/plain\n compression offload\n server one $A",
        fields: &["content-encoding", "accept-encoding", "etag"],
        requests: &[
            (
                "GET /\nAccept-Encoding: gzip\nX-Answer: Content-Type: text/plain",
                Same,
            ),
            (
                "GET /\nAccept-Encoding: gzip\nX-Answer: Content-Type: text/plain|ETag: \"a\"",
                Same,
            ),
            (
                "GET /\nAccept-Encoding: gzip\nX-Answer: Content-Type: text/plain|Cache-Control: no-transform",
                Same,
            ),
            (
                "GET /\nAccept-Encoding: gzip\nX-Answer: Content-Type: text/html",
                Same,
            ),
            ("GET /\nX-Answer: Content-Type: text/plain", Same),
        ],
    },
    Site {
        lines: "compression algo gzip\n server one $A",
        fields: &["content-encoding", "accept-encoding"],
        requests: &[
            (
                "GET /\nAccept-Encoding: gzip\nX-Answer: Content-Type: image/png",
                Same,
            ),
            (
                "GET /\nAccept-Encoding: gzip\nX-Answer: Content-Type: application/x-own",
                Same,
            ),
            (
                "GET /\nAccept-Encoding: gzip\nX-Answer: Content-Type: multipart/mixed",
                Same,
            ),
            (
                "GET /\nAccept-Encoding: gzip",
                Content("responses without Content-Type are not compressed"),
            ),
        ],
    },
    Site {
        lines: "http-request deny if { urlp(x) 1 }\n server one $A",
        fields: &[],
        requests: &[
            ("GET /?x=1&x=2", Same),
            ("GET /?x=2&x=1", Same),
            ("GET /?X=1", Status("403", "separates parameters at ;")),
            ("GET /?x=1;y=2", Same),
            ("GET /?y=2;x=1", Same),
            ("GET /?x=%31", Status("403", "compared decoded")),
        ],
    },
    Site {
        lines: "http-request deny unless { urlp(x) 1 }\n server one $A",
        fields: &[],
        requests: &[
            ("GET /?x=1&x=2", Same),
            ("GET /?x=2&x=1", Same),
            ("GET /?X=1", Same),
            (
                "GET /?x=1;y=2",
                Status("403", "HAProxy also separates them at ;"),
            ),
            ("GET /?x=%31", Status("200", "compared decoded")),
        ],
    },
    Site {
        lines: "http-request deny if { path_sub // }\n http-request deny if { path_reg [^a-z/.] }\n server one $A",
        fields: &[],
        requests: &[
            ("GET /a//secret", Same),
            ("GET //secret", Same),
            ("GET /a/..%2fsecret", Same),
            ("GET /secret", Status("403", "as the client sent them")),
        ],
    },
    Site {
        lines: "http-request deny unless { path_reg ^/[a-z/]*$ }\n server one $A",
        fields: &[],
        requests: &[
            ("GET /%61", Same),
            ("GET /a/%2e%2e/b", Same),
            ("GET /secret", Status("403", "as the client sent them")),
        ],
    },
    Site {
        lines: "http-request deny if { cook(x) 1 }\n http-request deny if { path_beg /admin }\n server one $A",
        fields: &[],
        requests: &[
            ("GET /admin/x", Same),
            ("GET /other", Same),
            ("GET /\nCookie: x=1; x=2", Same),
            ("GET /\nCookie: x=2; x=1", Same),
            ("GET /\nCookie: y=2, x=1", Same),
            ("GET /\nCookie: X=1", Same),
        ],
    },
];
