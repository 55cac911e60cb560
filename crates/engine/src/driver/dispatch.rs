//! Selects the driver, with one `match` per call: no table of functions, and nothing is allocated.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::Errno;

use super::Driver;
use super::operations::{
    FileRange, LastSend, ListenerState, NextData, Operations, Sender, operations,
};
use crate::address::{Address, Source};
use crate::buffers::buffer::Pool;
use crate::buffers::input::Input;
use crate::clock::Instant;
use crate::error::Error;
use crate::file::File;
use crate::file::pipe::Pipe;
use crate::socket::batch::{ReceiveBatch, SendBatch, Sending};
use crate::socket::key::Key;
use crate::socket::{Socket, Sockets};

/// The driver as an expression, of the tokens between `&` and the arguments.
macro_rules! driver {
    (mut $driver:ident) => {
        $driver
    };
    ($driver:ident) => {
        $driver
    };
}

macro_rules! dispatch {
    ($(
        $(#[$doc:meta])*
        fn $name:ident(&$($driver:ident)+ $(, $argument:ident: $type:ty)* $(,)?) $(-> $result:ty)?;
    )*) => {
        impl Operations for Driver {
            $(
                #[inline]
                fn $name(&$($driver)+ $(, $argument: $type)*) $(-> $result)? {
                    match driver!($($driver)+) {
                        Driver::Epoll(driver) => driver.$name($($argument),*),
                        Driver::Uring(driver) => driver.$name($($argument),*),
                        Driver::Simulated(driver) => driver.$name($($argument),*),
                    }
                }
            )*
        }
    };
}

operations!(dispatch);
