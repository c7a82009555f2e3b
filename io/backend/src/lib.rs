//! Block devices: the places where volumes keep their bytes.
//!
//! | backend | what it is |
//! |---|---|
//! | file | a regular file or a block device, through the io_uring of its thread |
//! | memory | sparse, gone when the process ends |
//! | station | k servers with a constant service time, in real time: a slow shared disk that anyone can run |
//! | array | a simulated disk array in real time; the bytes are in a sparse file |
//! | upstream | an export of another NBD server |
//!
//! Each is a [`BlockDevice`]: requests go in with [`start`](BlockDevice::start), finished requests come out
//! in any order, and nothing blocks. A request makes no future, no task and no channel: at 80,000 requests a
//! second, each of these costs more than the request itself. The device owns a request's memory until the
//! request is [`Finished`], so that nothing can free the memory while the kernel writes into it.
//!
//! Opening is separate from running. [`open()`] checks, locks and creates on the main thread, so that the
//! operator sees every error before anything is served. [`Opened::attach`] then brings the device onto the
//! thread that will drive it, and cannot fail.
//!
//! A driver's turn:
//!
//! ```text
//! device.poll_finished(now, &mut finished);        // stations, arrays and delayed requests, when poll_timeout() says so
//! device.start(now, request, &mut finished);       // any number
//! reactor.submit();                                // one system call, if there is anything to submit
//! reactor.poll_finished(cx, &mut finished);        // files and servers, also what `submit` finished at once
//! ```

mod array;
mod buffer;
mod device;
mod error;
mod fault;
mod file;
mod memory;
mod open;
mod open_error;
mod reactor;
mod station;
mod upstream;

pub use array::{ARRAY_SEED, array_place};
pub use buffer::{Buffer, BufferPool};
pub use device::{BlockDevice, DeviceRequest, Extent, Finished, Properties, Token};
pub use error::{BlockError, BlockErrorKind};
pub use fault::{Device, FaultEffect, FaultRule};
pub use open::{Attach, BackendSpec, Opened, open};
pub use open_error::OpenError;
pub use reactor::Reactor;
pub use rustix::io::Errno;
pub use upstream::ConnectError;

#[cfg(test)]
mod rig;
