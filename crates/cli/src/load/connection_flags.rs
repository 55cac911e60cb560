//! Flags of connections: source addresses, PROXY protocol, TLS.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use onrush_load::reach::{ConnectOptions, ProxyVersion, Sources};
use onrush_load::target::{Target, TargetAddress};
use onrush_load::{Cipher, ClientSetup, Group, Resume, Verify, Version};

use super::value::Switch;

/// How connections reach their server.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Connections")]
pub(super) struct ConnectionArgs {
    /// Source addresses, used in turn, each with its own ports: 10.0.0.2, 10.0.0.2-10.0.0.50, 10.0.0.0/28, or a comma-separated list
    #[arg(long, value_name = "LIST", value_parser = Sources::parse, hide_short_help = true)]
    source: Option<Sources>,

    /// Source ports, such as 40000-60000; Linux 6.3 or newer
    #[arg(long, value_name = "PORT-PORT", value_parser = ports, hide_short_help = true)]
    source_ports: Option<Ports>,

    /// Connect to this address instead of the URL's; Host and SNI are still taken from the URL
    #[arg(long, value_name = "HOST:PORT|unix:/PATH", value_parser = TargetAddress::parse, hide_short_help = true)]
    connect_to: Option<TargetAddress>,

    /// Send a PROXY protocol header with the connection's own addresses
    #[arg(long, value_name = "v1|v2", value_enum, hide_short_help = true)]
    proxy_protocol: Option<Proxy>,

    #[command(flatten)]
    tls: TlsArgs,
}

/// How TLS is spoken.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
    /// Do not verify the server's certificate
    #[arg(short = 'k', long, help_heading = None)]
    insecure: bool,

    /// PEM file of certificate authorities, instead of the system's
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        hide_short_help = true
    )]
    cacert: Option<PathBuf>,

    /// PEM file of the client certificate, for servers that request one
    #[arg(long, value_name = "FILE", requires = "key", hide_short_help = true)]
    cert: Option<PathBuf>,

    /// PEM file of the private key of --cert
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    key: Option<PathBuf>,

    /// Name for SNI and for verification, instead of the URL's host
    #[arg(long, value_name = "NAME", value_parser = name, hide_short_help = true)]
    sni: Option<String>,

    /// Resume TLS sessions of earlier connections [default: on]
    #[arg(long, value_name = "on|off", value_enum, hide_short_help = true)]
    tls_resume: Option<Switch>,

    /// Offer these TLS versions: 1.3, 1.2 [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = version, hide_short_help = true)]
    tls_versions: Vec<Version>,

    /// Offer these cipher suites, in order of preference, by IANA name, such as TLS_AES_128_GCM_SHA256 [default: all
    /// supported]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = cipher, hide_short_help = true)]
    tls_ciphers: Vec<Cipher>,

    /// Offer these key exchange groups, in order of preference, such as x25519,secp256r1 [default: x25519mlkem768
    /// and after it x25519, secp256r1, secp384r1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = group, hide_short_help = true)]
    tls_groups: Vec<Group>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Proxy {
    V1,
    V2,
}

/// Own type, because clap would misinterpret a range.
#[derive(Clone, Debug)]
struct Ports(RangeInclusive<u16>);

fn ports(text: &str) -> Result<Ports, String> {
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits)
    };
    let range = text
        .split_once('-')
        .and_then(|(low, high)| Some(number(low)?..=number(high)?));
    let expected = || format!("{text:?} is not a range of ports: expected one such as 40000-60000");
    range.map(Ports).ok_or_else(expected)
}

/// Parses a server name: an address is not allowed (RFC 6066 section 3).
fn name(text: &str) -> Result<String, String> {
    match text.parse::<IpAddr>() {
        Ok(_) => Err("--sni takes a host name, not an IP address: remove --sni".to_owned()),
        Err(_) => Ok(text.to_owned()),
    }
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.2" => Ok(Version::Tls12),
        "1.3" => Ok(Version::Tls13),
        _ => Err("unknown version of TLS: expected 1.2, 1.3 or 1.2,1.3".to_owned()),
    }
}

fn cipher(text: &str) -> Result<Cipher, String> {
    let known = |cipher: &Cipher| text.eq_ignore_ascii_case(cipher.name());
    Cipher::ALL.into_iter().find(known).ok_or_else(|| {
        let names = Cipher::ALL.map(Cipher::name).join(", ");
        format!("unknown cipher suite: expected one of {names}")
    })
}

fn group(text: &str) -> Result<Group, String> {
    let known = |group: &Group| text.eq_ignore_ascii_case(group.name());
    Group::ALL.into_iter().find(known).ok_or_else(|| {
        let names = Group::ALL.map(Group::name).join(", ");
        format!("unknown key exchange group: expected one of {names}")
    })
}

impl ConnectionArgs {
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let TlsArgs {
            cacert, cert, key, ..
        } = &self.tls;
        [cacert, cert, key].into_iter().flatten()
    }

    pub(super) fn sources(&self) -> Sources {
        self.source.clone().unwrap_or_default()
    }

    /// Connection settings for `target`.
    pub(super) fn reach(self, target: &Target) -> Result<ConnectOptions, String> {
        if !target.scheme.has_tls()
            && let Some(flag) = self.tls.first_given()
        {
            return Err(format!(
                "{flag} is only for TLS, and {} has no TLS: use {}://, or remove the option",
                target.url,
                target.scheme.with_tls().name()
            ));
        }
        Ok(ConnectOptions {
            connect_to: self.connect_to,
            sources: self.source.unwrap_or_default(),
            source_ports: self.source_ports.map(|Ports(ports)| ports),
            proxy_protocol: self.proxy_protocol.map(|version| match version {
                Proxy::V1 => ProxyVersion::V1,
                Proxy::V2 => ProxyVersion::V2,
            }),
            tls: self.tls.setup(),
        })
    }
}

impl TlsArgs {
    /// The first of these flags that is given.
    fn first_given(&self) -> Option<&'static str> {
        let flags = [
            ("--insecure", self.insecure),
            ("--cacert", self.cacert.is_some()),
            ("--cert", self.cert.is_some()),
            ("--sni", self.sni.is_some()),
            ("--tls-resume", self.tls_resume.is_some()),
            ("--tls-versions", !self.tls_versions.is_empty()),
            ("--tls-ciphers", !self.tls_ciphers.is_empty()),
            ("--tls-groups", !self.tls_groups.is_empty()),
        ];
        let mut given = flags.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(flag, _)| flag)
    }

    fn setup(self) -> ClientSetup {
        ClientSetup {
            verify: match self.cacert {
                _ if self.insecure => Verify::Nothing,
                Some(file) => Verify::File(file),
                None => Verify::System,
            },
            name: self.sni,
            certificate: self.cert.zip(self.key),
            resume: match self.tls_resume {
                Some(Switch::Off) => Resume::No,
                Some(Switch::On) | None => Resume::Yes,
            },
            versions: self.tls_versions,
            ciphers: self.tls_ciphers,
            groups: self.tls_groups,
            ..ClientSetup::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ConnectionArgs,
    }

    fn reach(url: &str, line: &str) -> Result<ConnectOptions, String> {
        let words = std::iter::once("load").chain(line.split_whitespace());
        match Line::try_parse_from(words) {
            Ok(line) => line.args.reach(&Target::parse(url).expect("a URL")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn default_connect_options_are_independent_of_scheme() {
        for url in ["http://a/", "https://a/", "unix:/a"] {
            assert_eq!(reach(url, ""), Ok(ConnectOptions::default()));
        }
    }

    #[test]
    fn connection_flags_are_parsed() {
        let line = "--source 10.0.0.2,::1 --source-ports 40000-50000 --connect-to a:81 --proxy-protocol v2";
        let read = reach("http://b/", line).unwrap();
        assert_eq!(read.sources.to_string(), "10.0.0.2,::1");
        assert_eq!(read.source_ports, Some(40000..=50000));
        assert_eq!(
            read.connect_to,
            Some(TargetAddress::Tcp("a".to_owned(), 81))
        );
        assert_eq!(read.proxy_protocol, Some(ProxyVersion::V2));
        let line = "--tls-versions 1.2,1.3 --tls-ciphers tls_aes_128_gcm_sha256 --sni a.example --cert c.pem --key k.pem --tls-resume off -k";
        let tls = reach("https://b/", line).unwrap().tls;
        assert_eq!(tls.versions, [Version::Tls12, Version::Tls13]);
        assert_eq!(tls.ciphers, [Cipher::Aes128]);
        assert_eq!(tls.name.as_deref(), Some("a.example"));
        assert_eq!(tls.certificate, Some(("c.pem".into(), "k.pem".into())));
        assert_eq!((tls.resume, tls.verify), (Resume::No, Verify::Nothing));
    }

    #[test]
    fn invalid_combinations_are_refused_with_advice() {
        for (line, part) in [
            ("--source a", "an address such as"),
            ("--source-ports 40000", "expected one such as 40000-60000"),
            ("--source-ports +1-2", "expected one such as 40000-60000"),
            ("--source-ports 1-65536", "expected one such as 40000-60000"),
            ("--connect-to a", "no port"),
            ("--proxy-protocol v3", "possible values: v1, v2"),
            ("--tls-versions 1.1", "expected 1.2, 1.3"),
            (
                "--tls-ciphers RC4",
                "expected one of TLS_AES_256_GCM_SHA384, ",
            ),
            ("--tls-groups x", "expected one of x25519mlkem768,"),
            ("--sni 10.0.0.1", "remove --sni"),
            ("--cert a", "--key <FILE>"),
            ("--key a", "--cert <FILE>"),
        ] {
            let error = reach("https://a/", line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn tls_flags_need_https() {
        for line in [
            "-k",
            "--cacert a",
            "--cert a --key b",
            "--sni a",
            "--tls-resume on",
            "--tls-versions 1.3",
            "--tls-ciphers TLS_AES_128_GCM_SHA256",
            "--tls-groups x25519",
        ] {
            let error = reach("http://a/", line).unwrap_err();
            assert!(error.contains("use https://"), "{line}: {error}");
        }
    }
}
