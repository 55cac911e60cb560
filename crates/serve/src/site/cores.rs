//! How many cores a server has, and on which CPUs.

use onrush_config::Plan;
use onrush_config::plan::Threads;
use onrush_engine::cpu;

/// One core per CPU that may be used, or as many as asked for; more cores than CPUs share them in turn.
///
/// # Errors
/// When CPUs are asked for that this process may not use.
pub(crate) fn placement(plan: &Plan) -> Result<Vec<Option<usize>>, String> {
    let allowed = cpu::allowed();
    let cpus = plan.cpus.clone().unwrap_or_else(|| allowed.clone());
    cpu::check(&cpus)?;
    let count = cores(plan, &allowed);
    // With fewer cores than CPUs and no wish for particular ones, the kernel knows better where there is room.
    let is_pinned = plan.cpus.is_some() || count >= cpus.len();
    Ok((0..count)
        .map(|core| is_pinned.then(|| cpus[core % cpus.len()]))
        .collect())
}

/// How many cores a plan has where these CPUs may be used.
pub(crate) fn cores(plan: &Plan, allowed: &[usize]) -> usize {
    match plan.threads {
        Threads::Auto => plan.cpus.as_deref().unwrap_or(allowed).len(),
        Threads::Count(count) => count.get(),
    }
}
