//! Exports, sessions and request headers that the tests of this crate share.

use crate::{BlockSizes, ExportInfo, Exports, REQUEST_LENGTH, Session, wire};

/// An export that can be written.
pub(crate) fn export(name: &str, size: u64) -> ExportInfo {
    ExportInfo {
        name: name.to_owned(),
        description: String::new(),
        size,
        read_only: false,
        fast_zero: true,
        multi_conn: true,
        block: BlockSizes { minimum: 1, preferred: 4096, maximum: 1 << 20 },
    }
}

/// A session with all that can be negotiated, of an export with 16 MiB.
pub(crate) fn session() -> Session {
    Session { export: export("db", 16 << 20), structured_replies: true, base_allocation: true }
}

/// The same session with nothing negotiated.
pub(crate) fn simple_session() -> Session {
    Session { structured_replies: false, base_allocation: false, ..session() }
}

/// A request.
pub(crate) fn header(
    flags: u16,
    command: u16,
    cookie: u64,
    offset: u64,
    length: u32,
) -> [u8; REQUEST_LENGTH] {
    [
        &wire::REQUEST_MAGIC.to_be_bytes()[..],
        &flags.to_be_bytes(),
        &command.to_be_bytes(),
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
    ]
    .concat()
    .try_into()
    .expect("a request has 28 bytes")
}

/// Some exports; the first is the default.
pub(crate) struct Listed(pub(crate) Vec<ExportInfo>);

impl Exports for Listed {
    fn names(&self) -> Vec<String> {
        self.0.iter().map(|export| export.name.clone()).collect()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        self.0.iter().find(|export| name.is_empty() || export.name == name).cloned()
    }
}

/// `db`, with a description, and `backup`.
pub(crate) fn two_exports() -> Listed {
    let db = ExportInfo { description: "the database".to_owned(), ..export("db", 16 << 20) };
    Listed(vec![db, export("backup", 1 << 30)])
}
