//! Answers that the query describes, in the language of httpterm and haterm.

use onrush_engine::Error;
use onrush_http::request::RequestHead;

use super::{Context, Writer};
use crate::connection::Connection;

pub(crate) struct Synthetic {}

pub(crate) fn answer(
    _head: &RequestHead<'_, '_>,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<Option<Box<Synthetic>>, Error> {
    super::refuse::refuse(404, "", &[], context, writer)?;
    Ok(None)
}

impl Synthetic {
    pub(crate) async fn send(self: Box<Self>, _connection: &mut Connection) -> Result<(), Error> {
        Ok(())
    }
}
