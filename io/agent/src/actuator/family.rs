//! The two families of addresses, and the map that each has in the agent's table.

/// The numbers of types in what nft(8) prints. The kernel only keeps them.
const TYPE_IPV4: u32 = 7;
const TYPE_IPV6: u32 = 8;
const TYPE_PORT: u32 = 13;

/// An address family. Each has a map of its own, because the lengths of their addresses differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both families.
    pub(super) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The name of its map.
    pub(super) fn map(self) -> &'static str {
        match self {
            Self::V4 => "members4",
            Self::V6 => "members6",
        }
    }

    /// The number of its map within a transaction.
    pub(super) fn map_number(self) -> u32 {
        match self {
            Self::V4 => 1,
            Self::V6 => 2,
        }
    }

    /// The type of its key, of which nft(8) reads 6 bits for each part, and its length. Each part of a key is
    /// padded to 4 bytes.
    pub(super) fn key(self) -> (u32, u32) {
        let (address, length) = match self {
            Self::V4 => (TYPE_IPV4, 4),
            Self::V6 => (TYPE_IPV6, 16),
        };
        (((address << 6 | TYPE_PORT) << 6 | address) << 6 | TYPE_PORT, 2 * (length + 4))
    }
}
