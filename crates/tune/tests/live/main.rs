//! Facts and limiters of this machine's kernel, in separate network namespaces.

mod namespace;

mod listening;
mod mixed;
mod packet_filter;
mod planted;
mod qdisc;
