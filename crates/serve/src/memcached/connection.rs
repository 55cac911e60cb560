//! A client of memcached's text protocol, from its first byte to its end.

use std::rc::Rc;

use onrush_engine::Error;

use super::answers::Piece;
use super::desk::{Desk, moment};
use super::session::{Next, Session};
use crate::far_end::{FarEnd, Heard};
use crate::output::Output;

/// Serves a client until either side has had enough. Answers to all that has come at a time leave in one call.
pub(crate) async fn serve(client: FarEnd, desk: Rc<Desk>) {
    // Who is gone need not be told why.
    let _ = converse(client, &desk).await;
}

async fn converse(mut client: FarEnd, desk: &Desk) -> Result<(), Error> {
    let (mut session, mut output) = (Session::default(), Output::default());
    loop {
        let next = answer(&mut client, desk, (&mut session, &mut output))?;
        if !output.is_empty() {
            client.limit_send();
            output.flush(&client.stream).await?;
        }
        match next {
            Next::Flush => {}
            Next::Close => return client.end().await,
            Next::Receive => match client.receive().await? {
                Heard::Bytes(_) => {}
                Heard::End => return Ok(()),
                Heard::Nothing => return client.end().await,
            },
        }
    }
}

fn answer(
    client: &mut FarEnd,
    desk: &Desk,
    (session, output): (&mut Session, &mut Output),
) -> Result<Next, Error> {
    let now = moment(&client.worker().core);
    let stream = &client.stream;
    let send = |pieces: &mut dyn Iterator<Item = Piece<'_>>| {
        for piece in pieces {
            match piece {
                Piece::Text(text) => output.put(stream, text)?,
                Piece::Value(value) => output.part(stream, Rc::clone(value)),
            }
        }
        Ok(())
    };
    let (done, next, sent) = desk.answer(session, client.input.bytes(), now, send);
    client.input.consume(done);
    sent.map(|()| next)
}
