//! Files of recorded engine decisions: written beside an engine that serves, and read to replay it.
//!
//! An engine calls its recorder some five times for each request, on the thread that serves the request. So
//! the format takes some ten nanoseconds an entry, and another thread writes the file.
//!
//! | file | what it does |
//! |---|---|
//! | `format` | the layout of a file |
//! | `writer` | [`FileRecorder`], which packs entries into blocks, and the thread that writes them |
//! | `reader` | [`Reader`], from a file to entries |
//!
//! **If the disk cannot keep up**, the recording ends there. The log, the file and the result of the
//! recording say so. If the recorder waited, clients would wait. If it left entries out, the rest would mean
//! nothing, because each decision depends on all before it.

mod format;
mod reader;
mod writer;

pub use format::{Ending, VERSION};
pub use reader::{ReadError, Reader};
pub use writer::{FileRecorder, Writing, Written, create};
