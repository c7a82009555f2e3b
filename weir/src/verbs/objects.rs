//! `weir put`, `get`, `ls`, `stat`, `rm`, `verify`, `repair`, `import`: the objects of a coordinator.

mod list;
mod moving;
mod repair;

pub(crate) use list::{ListArguments, RemoveArguments, StatArguments, list, remove, stat};
pub(crate) use moving::{GetArguments, ImportArguments, PutArguments, get, import, put};
pub(crate) use repair::{RepairArguments, repair, verify};

use weir_node::ObjectName;

use crate::failure::Failure;

/// The name of an object as an argument.
fn name(text: &str) -> Result<ObjectName, Failure> {
    text.parse().map_err(Failure::usage)
}
