//! Netlink attributes: type, length and value, padded to 4 bytes, and nested in each other.
//!
//! `netlink-packet-core` has the layout of one attribute. The attributes of HTB, netem and nf_tables are in
//! no crate that can be used here: `netlink-packet-route` knows neither HTB nor netem, so their options would
//! be raw bytes there, too.

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED, NLA_HEADER_SIZE, NlasIterator};

/// Attributes in the order in which they were put.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    /// No attributes.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// With an attribute of these bytes.
    pub(super) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let attribute = DefaultNla::new(kind, value.to_vec());
        let start = self.0.len();
        self.0.resize(start + attribute.buffer_len(), 0);
        attribute.emit(&mut self.0[start..]);
        self
    }

    /// With a text, which the kernel wants to end with a NUL byte.
    pub(super) fn text(self, kind: u16, value: &str) -> Self {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// With a number in the byte order of the host, as traffic control has it.
    pub(super) fn host64(self, kind: u16, value: u64) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// With a number in the byte order of networks, as nf_tables has it.
    pub(super) fn net32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// With a number in the byte order of networks.
    pub(super) fn net64(self, kind: u16, value: u64) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// With attributes within an attribute.
    pub(super) fn nest(self, kind: u16, inner: &Self) -> Self {
        self.bytes(kind | NLA_F_NESTED, &inner.0)
    }

    /// The attributes as the kernel reads them.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The attributes in what the kernel answered, until one is not whole.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(|attribute| {
        let attribute = attribute.ok()?;
        let (kind, end) = (attribute.kind(), usize::from(attribute.length()));
        Some((kind, attribute.into_inner().get(NLA_HEADER_SIZE..end)?))
    })
}

/// The value of the first attribute of this kind.
pub(super) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A text without the NUL byte at its end.
pub(super) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// A number of 32 bits in the byte order of the host.
pub(super) fn host32(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

/// A number of 64 bits in the byte order of the host.
pub(super) fn host64(value: &[u8]) -> Option<u64> {
    value.first_chunk().copied().map(u64::from_ne_bytes)
}

/// A number of 32 bits in the byte order of networks.
pub(super) fn net32(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_be_bytes)
}

/// A number of 64 bits in the byte order of networks.
pub(super) fn net64(value: &[u8]) -> Option<u64> {
    value.first_chunk().copied().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_read_again_and_padded() {
        let inner = Attributes::new().net32(1, 7).net64(2, 8).host64(3, 9);
        let all = Attributes::new().text(1, "eth0").nest(2, &inner);
        assert_eq!(all.as_bytes().len() % 4, 0);
        let nested = attribute(all.as_bytes(), 2).expect("it was put");
        assert_eq!(attribute(all.as_bytes(), 1).map(text), Some("eth0".to_owned()));
        assert_eq!(attribute(nested, 1).and_then(net32), Some(7));
        assert_eq!(attribute(nested, 2).and_then(net64), Some(8));
        assert_eq!(attribute(nested, 3).and_then(host64), Some(9));
        assert_eq!(attribute(nested, 4), None);
    }

    #[test]
    fn attributes_that_are_cut_off_are_not_read() {
        let all = Attributes::new().net32(1, 7).net32(2, 8);
        for length in 0..all.as_bytes().len() {
            let whole = attributes(&all.as_bytes()[..length]).count();
            assert_eq!(whole, length / 8, "{length} bytes");
        }
        assert_eq!(attributes(&[2, 0, 1, 0, 0, 0, 0, 0]).count(), 0, "shorter than its own head");
    }
}
