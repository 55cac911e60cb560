//! Outcomes of directives that no other part of the converter handles.

use crate::source::directive::Directive;
use crate::source::note::Outcome;

enum Kind {
    /// Carried by another part of the converter if the directive is in use.
    Used,
    /// No response differs, with the reason.
    WithoutEffect,
    /// Onrush has similar behaviour, with the difference.
    Approximated,
    /// Responses differ, with the reason.
    LeftOut,
}

/// Outcome, reason, and names of the directives; a name may end in `*`.
const KNOWN: &[(Kind, &str, &[&str])] = &[
    (
        Kind::Used,
        "not in use",
        &[
            "absolute_redirect",
            "add_header",
            "alias",
            "allow",
            "auth_basic",
            "auth_basic_user_file",
            "auth_request",
            "autoindex",
            "autoindex_*",
            "break",
            "client_body_timeout",
            "client_header_timeout",
            "client_max_body_size",
            "deny",
            "error_page",
            "events",
            "expires",
            "geo",
            "grpc_bind",
            "grpc_connect_timeout",
            "grpc_hide_header",
            "grpc_intercept_errors",
            "grpc_next_upstream",
            "grpc_next_upstream_*",
            "grpc_pass",
            "grpc_pass_header",
            "grpc_read_timeout",
            "grpc_send_timeout",
            "grpc_set_header",
            "grpc_ssl_*",
            "gzip",
            "gzip_min_length",
            "gzip_proxied",
            "gzip_static",
            "gzip_types",
            "gzip_vary",
            "hash",
            "http",
            "if",
            "index",
            "internal",
            "ip_hash",
            "keepalive",
            "keepalive_timeout",
            "least_conn",
            "limit_conn",
            "limit_conn_status",
            "limit_conn_zone",
            "limit_except",
            "limit_req",
            "limit_req_status",
            "limit_req_zone",
            "location",
            "map",
            "open_file_cache",
            "proxy_bind",
            "proxy_buffering",
            "proxy_connect_timeout",
            "proxy_hide_header",
            "proxy_http_version",
            "proxy_intercept_errors",
            "proxy_next_upstream",
            "proxy_next_upstream_*",
            "proxy_pass",
            "proxy_pass_header",
            "proxy_read_timeout",
            "proxy_redirect",
            "proxy_request_buffering",
            "proxy_send_timeout",
            "proxy_set_header",
            "proxy_ssl_*",
            "random",
            "return",
            "rewrite",
            "root",
            "satisfy",
            "send_timeout",
            "server",
            "set",
            "set_real_ip_from",
            "ssl_certificate",
            "ssl_certificate_key",
            "ssl_client_certificate",
            "ssl_crl",
            "ssl_protocols",
            "ssl_verify_client",
            "sticky",
            "try_files",
            "upstream",
        ],
    ),
    (
        Kind::WithoutEffect,
        "Onrush needs no such setting: it sizes buffers, tables and events itself",
        &[
            "accept_mutex",
            "accept_mutex_delay",
            "aio",
            "aio_write",
            "chunked_transfer_encoding",
            "client_body_buffer_size",
            "client_body_in_file_only",
            "client_body_in_single_buffer",
            "client_body_temp_path",
            "client_header_buffer_size",
            "connection_pool_size",
            "directio",
            "directio_alignment",
            "fastcgi_temp_path",
            "grpc_buffer_size",
            "grpc_socket_*",
            "gzip_buffers",
            "gzip_comp_level",
            "gzip_http_version",
            "gzip_disable",
            "ignore_invalid_headers",
            "keepalive_disable",
            "large_client_header_buffers",
            "lingering_*",
            "map_hash_*",
            "multi_accept",
            "open_file_cache_*",
            "output_buffers",
            "pcre_jit",
            "port_in_redirect",
            "postpone_output",
            "proxy_buffer_size",
            "proxy_buffers",
            "proxy_busy_buffers_size",
            "proxy_headers_hash_*",
            "proxy_max_temp_file_size",
            "proxy_ignore_client_abort",
            "proxy_socket_keepalive",
            "proxy_temp_file_write_size",
            "proxy_temp_path",
            "read_ahead",
            "request_pool_size",
            "reset_timedout_connection",
            "scgi_temp_path",
            "send_lowat",
            "sendfile",
            "sendfile_max_chunk",
            "server_name_in_redirect",
            "server_names_hash_*",
            "tcp_nodelay",
            "tcp_nopush",
            "thread_pool",
            "types_hash_*",
            "use",
            "uwsgi_temp_path",
            "variables_hash_*",
            "worker_aio_requests",
            "worker_connections",
            "worker_priority",
            "worker_rlimit_*",
            "worker_shutdown_timeout",
            "zone",
        ],
    ),
    (
        Kind::WithoutEffect,
        "the process is started by systemd or a shell, not from Onrush's configuration",
        &[
            "daemon",
            "env",
            "group",
            "lock_file",
            "master_process",
            "pid",
            "ssl_engine",
            "timer_resolution",
            "working_directory",
        ],
    ),
    (
        Kind::WithoutEffect,
        "Onrush logs to standard error, and its access log has its own formats",
        &[
            "access_log",
            "debug_connection",
            "error_log",
            "log_format",
            "log_not_found",
            "log_subrequest",
            "open_log_file_cache",
            "rewrite_log",
            "uninitialized_variable_warn",
        ],
    ),
    (
        Kind::WithoutEffect,
        "Onrush does not cache responses: every request is forwarded",
        &[
            "proxy_cache",
            "proxy_cache_*",
            "proxy_ignore_headers",
            "proxy_no_cache",
            "proxy_store",
            "proxy_store_access",
        ],
    ),
    (
        Kind::WithoutEffect,
        "response fields of servers do not control Onrush; it only refuses X-Accel-Redirect",
        &["grpc_ignore_headers"],
    ),
    (
        Kind::WithoutEffect,
        "all modules of Onrush are built in",
        &["load_module"],
    ),
    (
        Kind::WithoutEffect,
        "names are resolved by the system resolver, at startup and when they expire",
        &["resolver", "resolver_timeout"],
    ),
    (
        Kind::Approximated,
        "client connections are closed when they are idle, not after a number of requests or a time",
        &["keepalive_requests", "keepalive_time"],
    ),
    (
        Kind::Approximated,
        "responses have Server: onrush",
        &["server_tokens"],
    ),
    (
        Kind::Approximated,
        "Onrush's TLS profile sets ciphers, curves and session tickets",
        &[
            "ssl_buffer_size",
            "ssl_ciphers",
            "ssl_conf_command",
            "ssl_dhparam",
            "ssl_early_data",
            "ssl_ecdh_curve",
            "ssl_prefer_server_ciphers",
            "ssl_session_cache",
            "ssl_session_ticket_key",
            "ssl_session_tickets",
            "ssl_session_timeout",
        ],
    ),
    (
        Kind::Approximated,
        "Onrush does not staple OCSP responses",
        &[
            "ssl_stapling",
            "ssl_stapling_file",
            "ssl_stapling_responder",
            "ssl_stapling_verify",
            "ssl_trusted_certificate",
        ],
    ),
    (
        Kind::Approximated,
        "clients may use HTTP/2 or HTTP/1.1, with Onrush's own limits; there is no HTTP/3",
        &["http2", "http2_*", "http3", "http3_*", "quic_*"],
    ),
    (
        Kind::Approximated,
        "Onrush sends an ETag for each file and evaluates all conditional requests",
        &["etag", "if_modified_since"],
    ),
    (
        Kind::Approximated,
        "media types follow from file extensions by Onrush's own table; the default is application/octet-stream",
        &["default_type", "types"],
    ),
    (
        Kind::Approximated,
        "text types have charset UTF-8",
        &[
            "charset",
            "charset_types",
            "override_charset",
            "source_charset",
        ],
    ),
    (
        Kind::Approximated,
        "symbolic links are followed if they stay below the root",
        &["disable_symlinks"],
    ),
    (
        Kind::Approximated,
        "repeated slashes are always merged before paths are compared: a location for paths with repeated slashes gets no requests; if it restricts access, it refuses the paths with one slash",
        &["merge_slashes"],
    ),
    (
        Kind::Approximated,
        "fields with underscores in their names are forwarded, unless servers could confuse them with a field that Onrush sets; in values, $http_a_b is the field a-b only",
        &["underscores_in_headers"],
    ),
    (
        Kind::Approximated,
        "files are served with up to 100 ranges per request",
        &["max_ranges"],
    ),
    (
        Kind::LeftOut,
        "Onrush does not limit the rate of a response",
        &["limit_rate", "limit_rate_after", "proxy_limit_rate"],
    ),
    (
        Kind::LeftOut,
        "Onrush only supports HTTP towards servers",
        &["fastcgi_*", "memcached_*", "scgi_*", "uwsgi_*"],
    ),
    (
        Kind::LeftOut,
        "Onrush only forwards HTTP",
        &["stream", "mail"],
    ),
];

fn of_name(name: &str) -> Option<&'static (Kind, &'static str, &'static [&'static str])> {
    let is_it = |known: &&str| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *known,
    };
    KNOWN.iter().find(|(_, _, names)| names.iter().any(is_it))
}

/// Whether a directive of this name is in the tables.
pub(super) fn is_known(name: &str) -> bool {
    of_name(name).is_some()
}

/// Outcome of a directive that no other part has noted.
pub(super) fn unread(directive: &Directive) -> Outcome {
    let name = directive.name();
    if name == "default_type" && directive.argument(0) == "application/octet-stream" {
        let why = "it is also the default of Onrush";
        return Outcome::WithoutEffect(why.to_owned());
    }
    if name == "merge_slashes" && directive.argument(0) == "on" {
        return Outcome::Carried;
    }
    match of_name(name) {
        Some((Kind::Used | Kind::WithoutEffect, why, _)) => {
            Outcome::WithoutEffect((*why).to_owned())
        }
        Some((Kind::Approximated, how, _)) => Outcome::Approximated((*how).to_owned()),
        Some((Kind::LeftOut, why, _)) => Outcome::LeftOut((*why).to_owned()),
        None => Outcome::LeftOut("no equivalent in Onrush, or unknown to the converter".to_owned()),
    }
}
