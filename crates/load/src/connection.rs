//! One connection's part of a run, from its first request to its last: wait for the pace -> send -> receive -> record
//! from the intended start. The mirror image of the server's connection.

use std::rc::Rc;

use onrush_engine::Input;
use onrush_tls::Transport;

use crate::answer::{Lost, receive};
use crate::client::{Client, Last, Work};
use crate::limits::{BACK_OFF_MAX, BACK_OFF_MIN};

/// Makes connection `number` of the run, and makes it again whenever it ends, until there is nothing left to send.
pub(crate) async fn run(client: Rc<Client>, number: u64) {
    let mut work = client.work_of(number);
    let mut back_off = BACK_OFF_MIN;
    while client.has_work(&mut work, client.core.now_exact(), 0) {
        let stream = match client.connect().await {
            Ok(stream) => stream,
            Err(error) => {
                client.record.borrow_mut().connect_failed(&error);
                client.core.sleep(back_off).await;
                back_off = (back_off * 2).min(BACK_OFF_MAX);
                continue;
            }
        };
        let mut answered = 0;
        let end = exchange(&client, &stream, &mut work, &mut answered).await;
        client.closed(&mut work, end, answered);
        if answered > 0 {
            back_off = BACK_OFF_MIN;
        } else {
            // Accepted and dropped is as good as refused: no reason to hammer.
            drop(stream);
            client.core.sleep(back_off).await;
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
    }
    client.finished();
}

/// Sends and receives on one connection until either side has had enough of it. Requests that are still due then have
/// been sent, if at all, in vain.
async fn exchange(
    client: &Client,
    stream: &Transport,
    work: &mut Work,
    answered: &mut u64,
) -> Result<(), Lost> {
    let mut input = Input::default();
    let mut now = client.core.now_exact();
    client.extend_deadline(stream, now);
    while client.has_work(work, now, *answered) {
        let start = work.start(now);
        if start > now {
            client.core.sleep_until(start).await;
            now = client.core.now_exact();
            client.extend_deadline(stream, now);
        }
        let last = client.is_last(*answered + work.due);
        client.queue(stream, work.due, last);
        stream.flush().await?;
        while work.due > 0 {
            let answer = receive(client, stream, &mut input, &mut now).await?;
            *answered += 1;
            work.due -= 1;
            client.answered(answer, start, now);
            if !answer.keep_alive {
                return Ok(());
            }
        }
        if !input.is_empty() {
            return Err(Lost::Refused("more bytes than the answers have"));
        }
        if last == Last::Yes {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
