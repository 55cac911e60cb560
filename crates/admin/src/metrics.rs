//! `/metrics`, in the text format of Prometheus (version 0.0.4), in OpenMetrics 1.0 or as protocol buffers, as the
//! scraper requests (`accept.rs`). Only protocol buffers carry native histograms.
//!
//! `process.rs` and `tables.rs` define the metrics, `family.rs` reads their values, and each format has a file.

mod accept;
mod family;
mod process;
mod protobuf;
mod tables;
mod text;

use onrush_serve::{GroupView, sum_datagrams, sum_groups, sum_traffic};

use self::accept::Format;
use self::family::Families;
use self::process::{PROCESS, Process};
use self::tables::{CORE, DATAGRAMS, GROUP, GROUP_TRAFFIC, SERVER, TRAFFIC};
use self::text::TextFormat;
use crate::context::readiness::Phase;
use crate::context::setup::ProcessInfo;
use crate::response::Response;
use crate::views::CoreViews;

pub(crate) fn respond(
    views: &CoreViews,
    facts: &ProcessInfo,
    phase: Phase,
    accept: &str,
) -> Response {
    let cores = || views.cores.iter();
    let listeners = sum_traffic(cores().map(|view| &*view.listeners));
    let routes = sum_traffic(cores().map(|view| &*view.routes));
    let group_traffic = sum_traffic(cores().map(|view| &*view.group_traffic));
    let mut groups = sum_groups(cores().map(|view| &*view.groups));
    // Series are labelled by address, not by the name that resolved to it.
    groups.iter_mut().for_each(GroupView::merge_by_address);
    let process = Process::new(views, facts, phase);
    let mut families = Families::default();
    families.add("onrush_", &PROCESS, [(vec![], &process)]);
    let of_cores = cores().map(|view| (vec![("core", view.core.to_string().into())], view));
    families.add("onrush_", &CORE, of_cores);
    for (label, prefix, all) in [
        ("listener", "onrush_listener_", &listeners),
        ("route", "onrush_route_", &routes),
        ("group", "onrush_group_", &group_traffic),
    ] {
        let named = all
            .iter()
            .map(|view| (vec![(label, (&*view.name).into())], view));
        families.add(prefix, &TRAFFIC, named);
    }
    let datagrams = sum_datagrams(cores().map(|view| &*view.datagrams));
    let named = datagrams
        .iter()
        .map(|view| (vec![("listener", (&*view.name).into())], view));
    families.add("onrush_listener_", &DATAGRAMS, named);
    let named = group_traffic
        .iter()
        .map(|view| (vec![("group", (&*view.name).into())], view));
    families.add("onrush_group_", &GROUP_TRAFFIC, named);
    let named = groups
        .iter()
        .map(|view| (vec![("group", (&*view.name).into())], view));
    families.add("onrush_group_", &GROUP, named);
    let servers = groups.iter().flat_map(|of| {
        let servers = of.servers.iter();
        servers.map(move |server| {
            let labels = vec![
                ("group", (&*of.name).into()),
                ("server", (&*server.address).into()),
            ];
            (labels, server)
        })
    });
    families.add("onrush_server_", &SERVER, servers);
    let families = families.all();
    let format = Format::negotiate(accept);
    let body = match format {
        Format::Text => text::write(families, TextFormat::Prometheus).into_bytes(),
        Format::OpenMetrics => text::write(families, TextFormat::OpenMetrics).into_bytes(),
        Format::Protobuf => protobuf::write(families, facts.started),
    };
    Response::of(200, format.content_type(), body)
}
