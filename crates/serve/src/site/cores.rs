//! Number of cores, and their CPUs.

use onrush_config::Plan;
use onrush_config::plan::Threads;
use onrush_engine::cpu;

/// One core per usable CPU, or the configured number; if there are more cores than CPUs, they share CPUs in turn.
/// Fails if the plan names CPUs that this process may not use.
pub(crate) fn placement(plan: &Plan) -> Result<Vec<Option<usize>>, String> {
    let allowed = cpu::allowed();
    let cpus = plan.cpus.clone().unwrap_or_else(|| allowed.clone());
    cpu::check(&cpus)?;
    let count = cores(plan, &allowed);
    // With fewer cores than CPUs and no configured CPUs, leave the placement to the kernel.
    let is_pinned = plan.cpus.is_some() || count >= cpus.len();
    Ok((0..count)
        .map(|core| is_pinned.then(|| cpus[core % cpus.len()]))
        .collect())
}

/// The number of cores of a plan if these CPUs may be used.
pub(crate) fn cores(plan: &Plan, allowed: &[usize]) -> usize {
    match plan.threads {
        Threads::Auto => plan.cpus.as_deref().unwrap_or(allowed).len(),
        Threads::Count(count) => count.get(),
    }
}
