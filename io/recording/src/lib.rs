//! Files of recorded engine decisions: written beside an engine that serves, read to live it through again.
//!
//! A recorder is called some five times for each request, on the thread that serves it, so that the format is
//! one that can be written in some ten nanoseconds and the file is written by somebody else.
//!
//! | file | what it does |
//! |---|---|
//! | `format` | what stands where in a file |
//! | `writer` | [`FileRecorder`], which packs entries into blocks, and the thread that writes them |
//! | `reader` | [`Reader`], from a file to entries |
//!
//! **If the disk cannot keep up** the recording ends there, and says so in the log, in the file and at the
//! end. To wait would make clients wait; to leave something out would leave the rest without meaning, since
//! each decision hangs on all before it.

mod format;
mod reader;
mod writer;

pub use format::{Ending, VERSION};
pub use reader::{ReadError, Reader};
pub use writer::{FileRecorder, Writing, Written, create};
