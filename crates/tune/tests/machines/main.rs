//! Facts, limiters and plans, and applying and reverting plans, on recorded and generated machines.

mod machine;
mod memory;

mod apply;
mod cores;
mod facts;
mod irqbalance;
mod limiters;
mod persist;
mod plan;
mod ports;
mod search;
mod shapes;
mod show;
mod snapshot;
