//! `protocol` of `[[listen]]`: meaning, and error messages.

use onrush_config::plan::*;

use crate::support::{check_errors, parsed};

/// Protocol of a listener at a private address with these keys.
fn spoken(keys: &str) -> Protocol {
    let text = format!("[[listen]]\naddress = \"10.0.0.1:80\"\n{keys}");
    let parsed = parsed(&text);
    assert_eq!(parsed.warnings, [], "{text}");
    assert_eq!(parsed.plan.routes, [], "nobody asks for one");
    let listen = parsed.plan.listen.into_iter().next();
    listen.expect("one place").protocol
}

#[test]
fn protocol_keys_and_defaults_are_parsed() {
    let far_end = LoadTarget::default();
    let over = |transport| LoadTarget {
        transport,
        receive_buffer: None,
    };
    assert_eq!(far_end.transport, Transport::Both);
    for (keys, protocol) in [
        (
            "protocol = \"memcached\"",
            Protocol::Memcached(Memcached::default(), over(Transport::Tcp)),
        ),
        (
            "protocol = \"memcached\"\nmemory = \"1g\"\nitem_bytes_max = \"4m\"\ntls = \"self-signed\"",
            Protocol::Memcached(
                Memcached::Stored {
                    memory: 1 << 30,
                    item_bytes_max: 4 << 20,
                },
                over(Transport::Tcp),
            ),
        ),
        (
            "protocol = \"memcached\"\nmemory = \"100k\"\ntransport = \"both\"",
            Protocol::Memcached(
                Memcached::Stored {
                    memory: 100 << 10,
                    item_bytes_max: 100 << 10,
                },
                over(Transport::Both),
            ),
        ),
        (
            "protocol = \"memcached\"\nsynthetic = { value_bytes = 100 }\ntransport = \"udp\"",
            Protocol::Memcached(
                Memcached::Synthetic { value_bytes: 100 },
                over(Transport::Udp),
            ),
        ),
        ("protocol = \"echo\"", Protocol::Echo(far_end)),
        (
            "protocol = \"sink\"\ntransport = \"udp\"\nreceive_buffer = \"4m\"",
            Protocol::Sink(LoadTarget {
                transport: Transport::Udp,
                receive_buffer: Some(4 << 20),
            }),
        ),
        (
            "protocol = \"responder\"\nrequest_bytes = 1\nresponse_bytes = \"64m\"\ntls = \"self-signed\"",
            Protocol::Responder(Responder {
                request_bytes: 1,
                response_bytes: 64 << 20,
            }),
        ),
        (
            "protocol = \"echo\"\ntransport = \"tcp\"\ntls = \"self-signed\"",
            Protocol::Echo(LoadTarget {
                transport: Transport::Tcp,
                receive_buffer: None,
            }),
        ),
    ] {
        assert_eq!(spoken(keys), protocol, "{keys}");
    }
    let public = "[[listen]]\naddress = \":7\"\nprotocol = \"echo\"\npublic = true";
    assert!(!parsed(public).plan.listen[0].is_http());
}

#[test]
fn invalid_protocol_settings_are_reported() {
    check_errors(&[
        (
            "[[listen]]\naddress = \":7\"\nprotocol = \"ecko\"",
            &["3:12: unknown protocol \"ecko\"; nearest: \"echo\""],
        ),
        (
            "[[listen]]\naddress = \":7\"\nprotocol = \"echo\"",
            &[
                "2:11: 0.0.0.0:7 may be reachable from the Internet, where it can be abused to send traffic to spoofed addresses: expected a loopback or private address, or public = true",
            ],
        ),
        (
            "[[listen]]\naddress = \":7\"\nprotocol = \"memcached\"\ntransport = \"both\"\ntls = \"self-signed\"",
            &[
                "2:11: 0.0.0.0:7 may be reachable from the Internet, where it can be abused to send traffic to spoofed addresses: expected a loopback or private address, or public = true",
                "5:1: tls is not supported over UDP: expected transport = \"tcp\" as well",
            ],
        ),
        (
            "[[listen]]\naddress = \"unix:/run/x.sock\"\nprotocol = \"sink\"",
            &[
                "2:11: unix:/run/x.sock is a Unix socket, which cannot receive UDP: expected an IP address and a port, or transport = \"tcp\"",
            ],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nprotocol = \"echo\"\ntls = \"self-signed\"\nproxy_protocol = false\nmemory = \"1m\"",
            &[
                "4:1: tls is not supported over UDP: expected transport = \"tcp\" as well",
                "5:1: proxy_protocol is only for protocol = \"http\": set one of these, or remove the key",
                "6:1: memory is only for protocol = \"memcached\": set one of these, or remove the key",
            ],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nprotocol = \"memcached\"\nmemory = \"1m\"\nitem_bytes_max = \"2m\"\npublic = true",
            &[
                "5:1: item_bytes_max of 2097152 is more than memory, 1048576: expected less",
                "6:1: public is for datagrams: expected transport = \"udp\" or \"both\"",
            ],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nprotocol = \"memcached\"\nmemory = \"1\"\n[[listen]]\naddress = \"127.0.0.1:8\"\nprotocol = \"memcached\"\nsynthetic = true",
            &[
                "4:1: memory of 1 bytes is out of range: expected 65536 to 1099511627776",
                "8:13: synthetic is true or false: expected a table such as { value_bytes = 100 }",
            ],
        ),
        (
            "[[listen]]\naddress = \":7\"\nprotocol = \"responder\"\nrequest_bytes = 0\ntransport = \"tcp\"",
            &[
                "1:1: [[listen]] has no response_bytes: expected a size such as 100",
                "2:11: 0.0.0.0:7 may be reachable from the Internet, where it can be abused to send traffic to spoofed addresses: expected a loopback or private address, or public = true",
                "4:1: request_bytes of 0 bytes is out of range: expected 1 to 67108864",
                "5:1: transport is only for protocol = \"memcached\", \"echo\" or \"sink\": set one of these, or remove the key",
            ],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nprotocol = \"echo\"\nresponse_bytes = 1",
            &[
                "4:1: response_bytes is only for protocol = \"responder\": set one of these, or remove the key",
            ],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nprotocol = \"sink\"\ntransport = \"tcp\"\nreceive_buffer = \"1m\"",
            &["5:1: receive_buffer is for datagrams: expected transport = \"udp\" or \"both\""],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nmemory = \"1m\"\ntransport = \"udp\"",
            &[
                "3:1: memory is only for protocol = \"memcached\": set one of these, or remove the key",
                "4:1: transport is only for protocol = \"memcached\", \"echo\" or \"sink\": set one of these, or remove the key",
            ],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nprotocol = \"echo\"\ntransport = \"tcp\"\nhttp_versions = [\"h1\"]",
            &[
                "5:1: http_versions is only for protocol = \"http\": set one of these, or remove the key",
            ],
        ),
        (
            "[[listen]]\naddress = \":80\"\nhttp_versions = [\"h1\", \"h3\"]\n[[listen]]\naddress = \":81\"\nhttp_versions = []\n[[listen]]\naddress = \":82\"\nhttp_versions = \"h2\"",
            &[
                "3:24: http_versions has a version that is not supported: expected a list of \"h1\" and \"h2\", such as [\"h1\"]",
                "6:17: http_versions is empty: expected a list of \"h1\" and \"h2\", such as [\"h1\"]",
                "9:17: http_versions in [[listen]] is a string: expected a list of \"h1\" and \"h2\", such as [\"h1\"]",
            ],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nprotocol = \"sink\"",
            &[
                "4:3: no [[listen]] has protocol \"http\", so no client can reach a [[route]]: add such a [[listen]], or remove the [[route]]",
            ],
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:7\"\nname = \"bin\"\nprotocol = \"sink\"\n[[listen]]\naddress = \":80\"\n[[route]]\nlistener = \"bin\"\nsynthetic = true",
            &[
                "8:12: listener \"bin\" uses protocol sink and has no routes: expected a listener with protocol http",
            ],
        ),
    ]);
}
