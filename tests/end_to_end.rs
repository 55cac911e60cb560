//! End-to-end tests of the binary: with curl, ab, wrk, nghttp, h2load, nginx, HAProxy and memcached, real sockets and
//! real signals.
//!
//! Tests do not assert times, sleep, or use fixed ports: they wait for conditions, with a deadline.
#![forbid(unsafe_code)]

mod application;
mod metric_families;
mod peer;
mod program;
#[path = "../crates/load/tests/run/schema/check.rs"]
mod schema;

mod activating;
mod administering;
mod allocating;
mod asking;
mod balancing;
mod benching;
mod busy_polling;
mod caching;
mod caching_datagrams;
mod calling;
mod checking;
mod command_lines;
mod comparing;
mod confinement;
mod connections;
mod converting;
mod converting_certificates;
mod converting_rules;
mod converting_sites;
mod datagrams;
mod doubting;
mod encryption;
mod examples;
mod explaining;
mod far_ends;
mod faulting;
mod files;
mod forwarding;
mod frames;
mod generating;
mod going_away;
mod hanging_up;
mod hosting;
mod including;
mod journeys;
mod judging;
mod limiting;
mod loading;
mod logging;
mod multiplexing;
mod outputs;
mod pausing;
mod predicting;
mod privileges;
mod reaching;
mod reloading;
mod reporting;
mod responding;
mod results;
mod scraping;
mod smuggling;
mod starting;
mod status_page;
mod stopping;
mod streaming;
mod telling;
mod tokens;
mod tracing;
mod tunnelling;
mod upgrading;
