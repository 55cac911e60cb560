//! Choice of the listener of a request: the named one, or the first that fits its URL.

use anyhow::bail;
use onrush_config::address::parse_listen;
use onrush_config::plan::{Address, Listener, Plan, Scheme};

use super::request::Request;

/// A listener, and notes on the choice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListenerChoice {
    pub(super) index: usize,
    pub(super) notes: Vec<String>,
}

/// Chooses the listener.
///
/// # Errors
/// When no listener has the name `asked`, or none accepts HTTP.
pub(super) fn choose(
    plan: &Plan,
    request: &Request,
    asked: Option<&str>,
) -> anyhow::Result<ListenerChoice> {
    let all = &plan.listen;
    if let Some(asked) = asked {
        let address = parse_listen(asked).ok().map(|listen| listen.address);
        let is_it =
            |listen: &Listener| listen.name == asked || address.as_ref() == Some(&listen.address);
        let found = all.iter().position(is_it);
        if let Some(other) = found.map(|index| &all[index]).filter(|it| !it.is_http()) {
            bail!(
                "--listener {asked:?}: its protocol is {}, which has no HTTP requests",
                other.protocol
            );
        }
        let Some(index) = found else {
            let names: Vec<&str> = all.iter().map(|listen| &*listen.name).collect();
            bail!(
                "--listener {asked:?}: unknown listener: expected one of {}",
                names.join(", ")
            );
        };
        let notes = Vec::new();
        return Ok(ListenerChoice { index, notes });
    }
    let mut notes = Vec::new();
    let of_http: Vec<usize> = (0..all.len()).filter(|&at| all[at].is_http()).collect();
    if of_http.is_empty() {
        bail!("no listener has protocol HTTP: there are no requests to explain");
    }
    let mut fitting: Vec<usize> = of_http
        .iter()
        .copied()
        .filter(|&index| speaks(&all[index], request.scheme))
        .collect();
    if fitting.is_empty() {
        let scheme = request.scheme.map_or("", Scheme::text);
        notes.push(format!(
            "no listener uses {scheme}: assuming a proxy in front that does"
        ));
        fitting = of_http;
    }
    let has_port = |index: &usize| {
        let port = match &all[*index].address {
            Address::Tcp(address) => Some(address.port()),
            Address::Unix(_) => None,
        };
        port == request.port
    };
    if request.port.is_some() && fitting.iter().any(has_port) {
        fitting.retain(has_port);
    }
    let others: Vec<String> = fitting[1..]
        .iter()
        .map(|&index| format!("{:?}", all[index].name))
        .collect();
    if !others.is_empty() {
        notes.push(format!(
            "it could also arrive at {}: choose with --listener",
            others.join(", ")
        ));
    }
    Ok(ListenerChoice {
        index: fitting[0],
        notes,
    })
}

/// Whether a URL of this scheme can reach the listener.
fn speaks(listen: &Listener, scheme: Option<Scheme>) -> bool {
    match scheme {
        None => true,
        Some(Scheme::Https) => listen.tls.is_some() || listen.proxy_protocol.is_some(),
        Some(Scheme::Http) => listen.tls.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::{OneLiner, Tls};

    fn chosen(url: &str, asked: Option<&str>) -> anyhow::Result<(usize, usize)> {
        let at = |text: &str| parse_listen(text).expect(text);
        let mut all = [":80", ":8080", ":443", "unix:/run/x.sock"].map(at);
        all[1].name = "internal".to_owned();
        all[2].tls = Some(Tls::self_signed());
        let plan = Plan::one_liner(OneLiner::Synthetic, all.into());
        let request = Request::read(url, &[]).expect(url);
        let chosen = choose(&plan, &request, asked)?;
        Ok((chosen.index, chosen.notes.len()))
    }

    #[test]
    fn matching_or_requested_listener_is_selected() {
        for (url, asked, index, notes) in [
            ("http://h/", None, 0, 0),
            ("http://h:8080/", None, 1, 0),
            ("http://h:81/", None, 0, 1),
            ("https://h/", None, 2, 0),
            ("https://h:8443/", None, 2, 0),
            ("/", None, 0, 1),
            ("/", Some("internal"), 1, 0),
            ("/", Some(":8080"), 1, 0),
            ("https://h/", Some("unix:/run/x.sock"), 3, 0),
        ] {
            let found = chosen(url, asked).expect(url);
            assert_eq!(found, (index, notes), "{url} {asked:?}");
        }
        let error = chosen("/", Some("admin")).expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "--listener \"admin\": unknown listener: expected one of 0.0.0.0:80, internal, 0.0.0.0:443, unix:/run/x.sock"
        );
    }
}
