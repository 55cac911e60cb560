//! A run in the words of other tools: what h1load, h2load, wrk, wrk2 and mcblaster would print, to the column, so that scripts and plots that
//! read them go on working. Nothing here measures, and no figure is made up: where one of theirs does not exist, the
//! nearest of ours stands in its place and `docs/load.md` says so.

pub mod h1load;
pub mod h2load;
pub mod mcblaster;
pub mod wrk;
