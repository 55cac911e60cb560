//! Output in the formats of h1load, h2load, wrk, wrk2 and mcblaster, exact to the column, so that scripts and plots
//! that parse it keep working. Nothing here measures, and no figure is invented: a figure that this tool does not
//! measure is replaced by the nearest one, as `docs/load.md` documents.

pub mod h1load;
pub mod h2load;
pub mod mcblaster;
pub mod wrk;
