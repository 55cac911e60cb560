//! Facts and limiters of this machine's kernel, in network namespaces of their own.

mod namespace;

mod listening;
mod mixed;
mod packet_filter;
mod planted;
mod qdisc;
