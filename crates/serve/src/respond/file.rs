//! Files beneath a directory.

use onrush_engine::{Error, Root};
use onrush_http::request::RequestHead;

use super::{Context, Writer};
use crate::connection::Connection;

pub(crate) struct Files {
    _root: Root,
}

pub(crate) struct Pieces {}

impl Files {
    pub(crate) fn new(root: Root, _index: &[String], _hidden: bool) -> Self {
        Self { _root: root }
    }

    pub(crate) fn answer(
        &self,
        _head: &RequestHead<'_, '_>,
        _path: &[u8],
        context: Context,
        writer: &mut Writer<'_>,
    ) -> Result<Option<Box<Pieces>>, Error> {
        super::refuse::refuse(404, "", &[], context, writer)?;
        Ok(None)
    }
}

impl Pieces {
    pub(crate) async fn send(self: Box<Self>, _connection: &mut Connection) -> Result<(), Error> {
        Ok(())
    }
}
