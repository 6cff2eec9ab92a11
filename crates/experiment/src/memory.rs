//! Memory as a plan wants it when a trial begins: nobody swapped out, and files in memory or not.

use crate::ExperimentError;
use host::{Host, HostError, page_cache};
use model::plan::{Cell, PageCache, Plan};

/// What only root may do of it.
///
/// # Errors
/// [`HostError::NotRoot`] when the plan asks for it and this user is not.
pub(crate) fn allowed(plan: &Plan) -> Result<(), HostError> {
    if plan.memory.reset_swap {
        host::may_reset_swap()?;
    }
    let forgets_all = plan.variants.iter().any(|variant| plan.page_cache(variant) == PageCache::ColdHost);
    if forgets_all { page_cache::may_forget_all() } else { Ok(()) }
}

/// While no server runs that would be hindered by it. Says what came of it.
pub(crate) fn before_the_server(plan: &Plan, host: &Host) -> Result<Option<String>, ExperimentError> {
    if !plan.memory.reset_swap {
        return Ok(None);
    }
    let bytes = host.reset_swap()?;
    Ok((bytes > 0).then(|| "swap was reset before it, since something was in it".to_owned()))
}

/// After the warm-up, which reads files too.
pub(crate) fn before_the_window(plan: &Plan, cell: &Cell) -> Result<(), ExperimentError> {
    let variant = plan.variant(cell);
    let files = || plan.memory.files_of(plan.server_of(variant));
    match plan.page_cache(variant) {
        PageCache::AsItIs => {}
        PageCache::Cold => drop(page_cache::forget(&files())?),
        PageCache::ColdHost => page_cache::forget_all()?,
        PageCache::Read => drop(page_cache::fetch(&files())?),
    }
    Ok(())
}
