//! The exports that clients can choose from, and where each is served.

use std::collections::BTreeMap;

use weir_backend::Properties;
use weir_model::VolumeId;
use weir_nbd::{BlockSizes, ExportInfo, Exports};

/// The largest request, in bytes. A client that asks for no block sizes may assume it, by the specification.
pub(crate) const LARGEST_REQUEST: u32 = 32 * 1024 * 1024;

/// The shard, pool and number under which a volume is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) shard: usize,
    pub(crate) pool: usize,
    pub(crate) volume: VolumeId,
}

/// The volumes by export name. Replaced as a whole by a reload.
#[derive(Clone, Default, Debug)]
pub(crate) struct ExportTable {
    exports: BTreeMap<String, (ExportInfo, Place)>,
}

impl ExportTable {
    pub(crate) fn insert(&mut self, name: &str, description: &str, properties: Properties, place: Place) {
        let info = ExportInfo {
            name: name.to_owned(),
            description: description.to_owned(),
            size: properties.size,
            read_only: properties.read_only,
            fast_zero: properties.fast_zero,
            // All connections to a volume reach the same device: a flush on one covers the writes of all.
            multi_conn: true,
            block: BlockSizes {
                minimum: properties.minimum_block,
                preferred: properties.preferred_block,
                maximum: LARGEST_REQUEST,
            },
        };
        self.exports.insert(name.to_owned(), (info, place));
    }

    pub(crate) fn describe(&mut self, name: &str, description: &str) {
        if let Some((info, _)) = self.exports.get_mut(name) {
            description.clone_into(&mut info.description);
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.exports.remove(name);
    }

    /// The names of all volumes.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = &str> {
        self.exports.keys().map(String::as_str)
    }

    pub(crate) fn place(&self, name: &str) -> Option<Place> {
        self.exports.get(name).map(|(_, place)| *place)
    }
}

impl Exports for ExportTable {
    fn names(&self) -> Vec<String> {
        self.exports.keys().cloned().collect()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        self.exports.get(name).map(|(info, _)| info.clone())
    }
}
