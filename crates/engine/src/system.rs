//! The process: CPUs, descriptors, limits, identity, Landlock, randomness.

pub(crate) mod allowance;
pub(crate) mod confinement;
pub mod cpu;
pub mod descriptors;
pub(crate) mod identity;
pub(crate) mod network_namespace;
pub mod random;
pub(crate) mod seccomp;
pub(crate) mod standard_output;
