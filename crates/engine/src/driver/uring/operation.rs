//! Encoding of an operation and its socket in the user data of a completion.

use crate::socket::key::Key;

/// An operation of a socket: the upper half of the user data.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Operation {
    Accept = 1,
    Recv = 2,
    Send = 3,
    PollWritable = 4,
    Cancel = 5,
    Wake = 6,
    PollReadable = 7,
    PollHangup = 8,
}

pub(super) fn user_data(operation: Operation, key: Key) -> u64 {
    (operation as u64) << 32 | u64::from(key.0)
}

pub(super) fn split(user_data: u64) -> (Operation, Key) {
    let operation = match (user_data >> 32) as u32 {
        1 => Operation::Accept,
        2 => Operation::Recv,
        3 => Operation::Send,
        4 => Operation::PollWritable,
        5 => Operation::Cancel,
        6 => Operation::Wake,
        7 => Operation::PollReadable,
        8 => Operation::PollHangup,
        other => unreachable!("no operation has the number {other}"),
    };
    (operation, Key(user_data as u32))
}
