//! The request of `explain` and `ctl explain`, and its explanation as JSON and as text.

mod explanation;
mod listener;
mod request;
mod show;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, bail};
use onrush_config::RoutePlace;
use onrush_config::plan::{Address, Scheme};
use onrush_serve::{ExplainRequest, Explainer};
use serde_json::{Value, json};

use request::Request;

pub(crate) use show::show;

/// A request, and how it comes.
#[derive(clap::Args)]
pub(crate) struct ExplainArgs {
    // In the attribute: rustdoc takes the brackets for a link.
    #[arg(
        help = "[METHOD] URL or path, such as 'GET https://host/path'; the default method is GET",
        value_name = "REQUEST"
    )]
    pub(crate) request: String,
    /// Add this header field to the request; repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Client address: IP or IP:PORT [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) client: Option<String>,
    /// Listener that receives the request, by name or address [default: the first that fits the URL]
    #[arg(long, value_name = "NAME")]
    pub(crate) listener: Option<String>,
}

impl ExplainArgs {
    /// The question as the admin interface receives it.
    pub(crate) fn as_json(&self) -> Value {
        let mut asked = json!({ "request": self.request, "headers": self.header });
        for (key, value) in [("client", &self.client), ("listener", &self.listener)] {
            if let Some(value) = value {
                asked[key] = value.clone().into();
            }
        }
        asked
    }

    /// Parses a question to the admin interface.
    pub(crate) fn of(asked: &Value) -> anyhow::Result<ExplainArgs> {
        const EXPECTED: &str = "expected {\"request\": \"[METHOD] URL or path\"} with \"headers\": [\"Name: value\"], \"client\" or \"listener\"";
        let fields = asked.as_object().context(EXPECTED)?;
        let known = ["request", "headers", "client", "listener"];
        if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            bail!("unknown key {key:?}: {EXPECTED}");
        }
        let text = |key: &str| match fields.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => bail!("{key} is not a string: {EXPECTED}"),
        };
        let headers = match fields.get("headers") {
            None => Some(Vec::new()),
            Some(headers) => headers.as_array().and_then(|all| {
                let text = |header: &Value| header.as_str().map(str::to_owned);
                all.iter().map(text).collect()
            }),
        };
        Ok(ExplainArgs {
            request: text("request")?.context(EXPECTED)?,
            header: headers.context(EXPECTED)?,
            client: text("client")?,
            listener: text("listener")?,
        })
    }
}

/// Explains how a request is handled, as JSON. `places` holds the position of each route in its file.
///
/// # Errors
/// When the request is malformed, or no listener fits.
pub(crate) fn explain(
    explainer: &Explainer,
    places: &[RoutePlace],
    asked: &ExplainArgs,
) -> anyhow::Result<Value> {
    let plan = explainer.plan();
    let request = Request::read(&asked.request, &asked.header)?;
    let listener = listener::choose(plan, &request, asked.listener.as_deref())?;
    let listen = &plan.listen[listener.index];
    let client = client(asked.client.as_deref(), &listen.address)?;
    // With the PROXY protocol a load balancer reports whether the client used TLS.
    let scheme = match (&listen.tls, &listen.proxy_protocol, request.scheme) {
        (Some(_), _, _) | (None, Some(_), Some(Scheme::Https)) => Scheme::Https,
        (None, _, _) => Scheme::Http,
    };
    let mut notes = listener.notes;
    notes.extend(request.notes.iter().cloned());
    if request.scheme.is_some_and(|asked| asked != scheme) {
        notes.push(format!(
            "listener {:?} uses {}: routes see this scheme unless a trusted proxy reports another",
            listen.name,
            scheme.text()
        ));
    }
    let explanation = explainer.explain(&ExplainRequest {
        listener: listener.index,
        client,
        scheme,
        bytes: request.head(),
    })?;
    let mut value = explanation::json(&explanation, explainer, places);
    value["request"] = json!({
        "method": request.method,
        "target": request.target,
        "host": request.host,
        "client": explanation.client.map(|client| client.to_string()),
        "scheme": explanation.scheme.text(),
    });
    value["notes"] = notes.into();
    Ok(value)
}

/// Address of the client; `None` on a Unix socket, unless one is given.
fn client(asked: Option<&str>, listen: &Address) -> anyhow::Result<Option<SocketAddr>> {
    // An arbitrary port of the ephemeral range.
    const PORT: u16 = 50_000;
    let Some(text) = asked else {
        return Ok(match listen {
            Address::Tcp(SocketAddr::V6(_)) => Some((Ipv6Addr::LOCALHOST, PORT).into()),
            Address::Tcp(_) => Some((Ipv4Addr::LOCALHOST, PORT).into()),
            Address::Unix(_) => None,
        });
    };
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Some(address));
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address: IpAddr = bare
        .parse()
        .with_context(|| format!("--client {text:?}: expected an address such as 192.0.2.1"))?;
    if address.is_unspecified() {
        bail!("--client {text:?}: not a possible client address: expected one such as 192.0.2.1");
    }
    Ok(Some((address, PORT).into()))
}
