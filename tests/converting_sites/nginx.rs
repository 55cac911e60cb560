//! Sites of nginx.

use super::{Content, Noted, Same, Site, Status};

pub(super) const NGINX: &[Site] = &[
    Site {
        lines: "location /admin/ { deny all; } location / { proxy_pass http://app; }",
        fields: &[],
        requests: &[
            ("GET /x/..%2fadmin/s", Same),
            ("GET /.%2fadmin/s", Same),
            ("GET /%2fadmin/s", Same),
            ("GET /admin/s", Same),
            ("GET /x", Same),
        ],
    },
    Site {
        lines: "root $FILES/www; location / { auth_basic a; auth_basic_user_file $FILES/users; } location /static/ { }",
        fields: &[],
        requests: &[
            ("GET /static/..%2fsecret", Same),
            ("GET /static/a.txt", Same),
        ],
    },
    Site {
        lines: "location / { secure_link $arg_m; secure_link_md5 \"x$uri\"; if ($secure_link = \"\") { return 403; } root $FILES/www; }",
        fields: &[],
        requests: &[("GET /a.html", Same), ("GET /a.html?m=x", Same)],
    },
    Site {
        lines: "location / { valid_referers none friend.example; if ($invalid_referer) { return 403; } root $FILES/www; }",
        fields: &[],
        requests: &[
            ("GET /a.html\nReferer: http://x/", Same),
            ("GET /a.html", Status("403", "--open-guards")),
        ],
    },
    Site {
        lines: "if ($ssl_client_verify != SUCCESS) { return 403; } location / { root $FILES/www; }",
        fields: &[],
        requests: &[("GET /a.html", Same)],
    },
    Site {
        lines: "location / { proxy_pass http://app; proxy_set_header X-A $time_iso8601; proxy_set_header X-B $realip_remote_addr; }",
        fields: &["x-a", "x-b"],
        requests: &[(
            "GET /\nX-A: theirs\nX-B: theirs",
            Content("Onrush has no equivalent for $realip_remote_addr"),
        )],
    },
    Site {
        lines: "location / { empty_gif; }",
        fields: &[],
        requests: &[("GET /", Status("501", "empty_gif"))],
    },
    Site {
        lines: "root $FILES/www; location /moved/ { rewrite ^/moved/(.*)$ /sub/$1 break; }",
        fields: &[],
        requests: &[("GET /moved/b.html", Same), ("GET /moved/none", Same)],
    },
    Site {
        lines: "location / { if ($http_x_key != \"secret$host\") { return 403; } root $FILES/www; } location /arg { if ($arg_t = $cookie_t) { return 403; } return 200 arg; }",
        fields: &[],
        requests: &[
            ("GET /a.html\nX-Key: secret$host", Same),
            ("GET /a.html", Same),
            ("GET /arg?t=1\nCookie: t=1", Same),
        ],
    },
    Site {
        lines: "root $FILES/www; location = /index.html { add_header X-A own; }",
        fields: &["x-a"],
        requests: &[
            ("GET /index.html", Same),
            ("GET /", Content("do not apply to index.html")),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; proxy_hide_header X-A; add_header X-A ours; add_header X-B ours; }",
        fields: &["x-a", "x-b"],
        requests: &[("GET /\nX-Answer: X-A: theirs|X-B: theirs", Same)],
    },
    Site {
        lines: "rewrite ^/old$ /new?x=1 redirect; rewrite ^/bare$ /new?x=1? redirect; return 204;",
        fields: &["location"],
        requests: &[
            ("GET /old?y=2", Same),
            ("GET /old", Content("without a query in the request")),
            ("GET /bare?y=2", Same),
        ],
    },
    Site {
        lines: "location / { root $FILES/www; add_header Last-Modified now; add_header ETag \"\"; }",
        fields: &["last-modified", "etag"],
        requests: &[("GET /a.html", Same)],
    },
    Site {
        lines: "location /u { return 301 /x$uri; } location /h { return 301 /x$http_x_a; }",
        fields: &["location"],
        requests: &[
            ("GET /uv", Same),
            ("GET /u%2561", Content("decodes it")),
            ("GET /h\nX-A: 1", Same),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; proxy_set_header X-A $proxy_add_x_forwarded_for; }",
        fields: &["x-a"],
        requests: &[
            ("GET /", Same),
            (
                "GET /\nX-Forwarded-For: 192.0.2.1",
                Content("contains only the client address"),
            ),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; } location /i/ { internal; root $FILES/www; } location /pass { proxy_pass http://app; proxy_pass_header X-Accel-Expires; proxy_pass_header Server; } location /ignore { proxy_pass http://app; proxy_ignore_headers X-Accel-Redirect; }",
        fields: &[
            "x-accel-expires",
            "x-accel-limit-rate",
            "x-accel-buffering",
            "x-accel-charset",
            "x-accel-redirect",
            "x-pad",
            "server",
            "date",
        ],
        requests: &[
            (
                "GET /\nX-Answer: X-Accel-Expires: 0|X-Accel-Limit-Rate: 0|X-Accel-Buffering: no|X-Accel-Charset: utf-8|X-Pad: x",
                Same,
            ),
            (
                "GET /\nX-Answer: Server: theirs|Date: Thu, 01 Jan 1970 00:00:00 GMT",
                Same,
            ),
            (
                "GET /pass\nX-Answer: X-Accel-Expires: 0|Server: theirs",
                Same,
            ),
            ("GET /ignore\nX-Answer: X-Accel-Redirect: /i/a.html", Same),
            (
                "GET /\nX-Answer: X-Accel-Redirect: /i/a.html",
                Status("502", "response with X-Accel-Redirect"),
            ),
        ],
    },
    Site {
        lines: "root $FILES/www; autoindex on; autoindex_format json;",
        fields: &[],
        requests: &[("GET /sub/", Content("prefers it"))],
    },
    Site {
        lines: "return 200 fixed;",
        fields: &["allow"],
        requests: &[("TRACE /", Same), ("GET /", Same)],
    },
    Site {
        lines: "real_ip_header X-Real-IP; set_real_ip_from 127.0.0.0/8; location / { allow 127.0.0.0/8; deny all; root $FILES/www; }",
        fields: &[],
        requests: &[
            (
                "GET /a.html\nX-Real-IP: 192.0.2.1",
                Status("501", "a field that Onrush does not read"),
            ),
            (
                "GET /a.html",
                Status("501", "a field that Onrush does not read"),
            ),
        ],
    },
    Site {
        lines: "location / { secure_link_secret word; if ($secure_link = \"\") { return 403; } root $FILES/www; }",
        fields: &[],
        requests: &[("GET /p/0123/a.html", Same), ("GET /a.html", Same)],
    },
    Site {
        lines: "if ($realip_remote_addr = 192.0.2.1) { return 403; } root $FILES/www;",
        fields: &[],
        requests: &[("GET /a.html", Status("403", "--open-guards"))],
    },
    Site {
        lines: "if ($of_field) { return 403; } root $FILES/www;",
        fields: &[],
        requests: &[
            ("GET /a.html\nX-Address: 192.0.2.1", Same),
            (
                "GET /a.html",
                Status(
                    "403",
                    "networks can only be compared with the client address",
                ),
            ),
        ],
    },
    Site {
        lines: "location / { limit_rate 1k; limit_rate_after 1k; root $FILES/www; } location /set/ { set $limit_rate 1k; root $FILES/www; }",
        fields: &[],
        requests: &[
            (
                "GET /a.html",
                Noted("does not limit the rate of a response"),
            ),
            (
                "GET /set/none",
                Noted("does not limit the rate of a response"),
            ),
        ],
    },
    Site {
        lines: "set $args x=1; location / { proxy_pass http://app; } location /r { return 301 /b?$args; } location /w { rewrite ^/w$ /b permanent; }",
        fields: &["location"],
        requests: &[
            ("GET /?y=2", Content("keep the query of the client")),
            ("GET /r?y=2", Same),
            ("GET /w?y=2", Same),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; proxy_set_header X-A $uri; } location /h { proxy_pass http://app; proxy_set_header X-A $http_x_b; }",
        fields: &["x-a"],
        requests: &[
            ("GET /a/b", Same),
            ("GET /a%20b", Content("decodes it")),
            ("GET /h\nX-B: 1", Same),
            // nginx joins the values since version 1.23.
            (
                "GET /h\nX-B: 1\nX-B: 2",
                Noted("the first value of a repeated field is used; nginx joins"),
            ),
            ("GET /h", Content("the field is sent empty")),
        ],
    },
    Site {
        lines: "add_header X-A $http_x_b; add_header X-C $is_args$args; return 200 x;",
        fields: &["x-a", "x-c"],
        requests: &[
            ("GET /?x=1\nX-B: 1", Same),
            ("GET /?x=1", Content("the field is sent empty")),
            (
                "GET /\nX-B: 1",
                Content("a ? even if the request has no query"),
            ),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; add_header Last-Modified \"\"; add_header ETag \"\"; } location /own { proxy_pass http://app; add_header Last-Modified now; add_header ETag $http_x_tag; }",
        fields: &["last-modified", "etag"],
        requests: &[
            (
                "GET /\nX-Answer: ETag: \"a\"|Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT",
                Same,
            ),
            (
                "GET /own\nX-Tag: b\nX-Answer: ETag: \"a\"|Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT",
                Same,
            ),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; proxy_hide_header X-A; add_header X-A ours always; }",
        fields: &["x-a"],
        requests: &[("GET /\nX-Answer: X-A: theirs", Same)],
    },
    Site {
        lines: "root $FILES/www; autoindex on; location /xml/ { alias $FILES/www/sub/; autoindex_format xml; } location /jsonp/ { alias $FILES/www/sub/; autoindex_format jsonp; }",
        fields: &[],
        requests: &[
            ("GET /xml/", Content("a directory listing is HTML, or JSON")),
            (
                "GET /jsonp/?callback=x",
                Content("a directory listing is HTML, or JSON"),
            ),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; } location /files { root $FILES/www; } location /closed { deny all; root $FILES/www; }",
        fields: &["allow"],
        requests: &[
            ("TRACE /", Same),
            ("TRACE /files", Same),
            ("TRACE /closed", Same),
        ],
    },
];
