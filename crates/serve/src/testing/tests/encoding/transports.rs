//! Compressed responses for many concurrent clients, and over TLS on both sides.

use onrush_config::plan::{
    Certificate, OneLiner, Plan, Route, ServerAddress, Tls, UpstreamTls, Verify,
};
use onrush_engine::Address;
use onrush_http::Method;
use onrush_http::encoding::Coding;

use super::super::edits::{edits, text as template};
use super::{ALL, compress, encoding_plan, request, text};
use crate::testing::harness::{Step, on_every_driver};
use crate::worker::compress::decode::Received;

#[test]
fn concurrent_clients_get_own_content_coding() {
    on_every_driver(|site| async move {
        let echo = [Step::Read, Step::Echo, Step::Again];
        let upstream = site.upstream(&[&echo]);
        let mut plan = encoding_plan(&upstream);
        // The server sends no content type.
        plan.routes[0].edits.response =
            edits(&[], &[("Content-Type", template("text/plain"))], &[]);
        let address = site.serve(&plan);
        let mut clients = Vec::new();
        for number in 0..8 {
            let client = site.connect(&address).await;
            let path = format!("/{number}{}", "/and/on".repeat(40));
            let coding = ALL.get(number % 4).copied();
            let accepted = coding.map_or("identity", Coding::token);
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: h\r\nAccept-Encoding: {accepted}\r\n\r\n");
            client.send(request.as_bytes()).await;
            clients.push((client, path, coding));
        }
        for (client, path, coding) in &mut clients {
            let response = client
                .receive_response(Method::Get)
                .await
                .expect("a response");
            let (response, _) = Received::first(&response, Method::Get);
            assert_eq!(response.coding(), *coding);
            assert_eq!(response.content(), path.as_bytes());
            assert_eq!(response.field("vary"), ["Accept-Encoding"]);
        }
    });
}

fn forwarding_over_tls(address: &Address) -> Plan {
    let Address::Tcp(address) = *address else {
        unreachable!("claims here are of TCP")
    };
    let behind = OneLiner::ForwardTls(vec![ServerAddress::Ip(address)]);
    let mut plan = Plan::one_liner(behind, Vec::new());
    plan.upstreams[0].tls = Some(UpstreamTls {
        verify: Verify::Insecure,
        ..UpstreamTls::default()
    });
    plan
}

fn with_tls(mut plan: Plan) -> Plan {
    plan.listen[0].tls = Some(Tls::with(vec![Certificate::SelfSigned]));
    plan
}

fn encoding(mut plan: Plan) -> Plan {
    for Route {
        compress: offer, ..
    } in &mut plan.routes
    {
        *offer = Some(compress());
    }
    plan
}

#[test]
fn compression_works_with_tls_on_both_sides() {
    // A body that fits one TLS record, and a large one.
    for bytes in [1000, 300_000] {
        for coding in ALL {
            on_every_driver(|site| async move {
                let content = text(bytes);
                let server = super::fixed(200, &[], &content);
                let mut server = with_tls(server);
                server.routes[0].compress = None;
                let server = site.serve(&server);
                let middle = site.serve(&encoding(with_tls(forwarding_over_tls(&server))));
                let front = site.serve(&forwarding_over_tls(&middle));
                let fields = format!("Accept-Encoding: {}\r\n", coding.token());
                let requests = request("GET", &fields).repeat(2);
                let responses = site
                    .connect(&front)
                    .await
                    .exchange(requests.as_bytes())
                    .await;
                let responses = Received::all(&responses, Method::Get);
                assert_eq!(responses.len(), 2);
                for response in responses {
                    assert_eq!(response.coding(), Some(coding));
                    assert!(response.content() == content && response.body.len() < bytes);
                }
            });
        }
    }
}
