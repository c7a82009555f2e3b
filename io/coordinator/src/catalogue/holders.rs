//! Who has a name on a node.
//!
//! By this one answer a transfer is placed, a replica is stored, and a leftover is removed. If each of the
//! three looked for itself, one of them would remove what another one counts on.

use rusqlite::params;

use super::{Catalogue, CatalogueError, FINISHING};

/// Who has a name on a node, as far as the catalogue knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// Nobody.
    Nobody,
    /// The object of that name has a replica there.
    Replica,
    /// This transfer was about to finish there, and has not ended: what it wrote may be visible.
    Transfer(u64),
    /// Something that is yet to be removed from there.
    Leftover,
}

/// Who has one name, on all nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Holders(Vec<(String, Holder)>);

impl Holders {
    /// On this node. A replica counts before a transfer, and a transfer before a leftover.
    pub(crate) fn on(&self, node: &str) -> Holder {
        self.0.iter().find(|(held, _)| held == node).map_or(Holder::Nobody, |(_, holder)| *holder)
    }
}

impl Catalogue {
    /// Who has a name, on all nodes. The transfer `but` does not count, nor does any if it is 0.
    pub(crate) fn holders(&self, name: &str, but: u64) -> Result<Holders, CatalogueError> {
        let query = "SELECT node, 0 AS rank, 0 FROM replica JOIN object ON object.id = object WHERE name = ?1
                     UNION ALL SELECT node, 1, id FROM transfer WHERE name = ?1 AND id <> ?2
                     AND state IN (1, 2, 6)
                     AND EXISTS (SELECT 1 FROM note WHERE transfer = transfer.id AND line = ?3)
                     UNION ALL SELECT node, 2, 0 FROM leftover WHERE name = ?1 ORDER BY rank";
        let rows = self.rows(query, params![name, but, FINISHING], |row| {
            let holder = match row.get(1)? {
                0 => Holder::Replica,
                1 => Holder::Transfer(row.get(2)?),
                _ => Holder::Leftover,
            };
            Ok((row.get(0)?, holder))
        });
        rows.map(Holders)
    }

    /// Who has a name on a node. The transfer `but` does not count, nor does any if it is 0.
    pub(crate) fn holder(&self, node: &str, name: &str, but: u64) -> Result<Holder, CatalogueError> {
        self.holders(name, but).map(|holders| holders.on(node))
    }
}
