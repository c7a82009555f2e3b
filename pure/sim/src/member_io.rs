//! What a member of an array is asked, and what it answers: the same for every kind of member.

use weir_model::Instant;

/// A request to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberIo {
    /// The driver's number for it; unique among the member's outstanding requests.
    pub tag: u32,
    /// Whether data flows to the medium.
    pub write: bool,
    /// First byte.
    pub offset: u64,
    /// Number of bytes, above zero.
    pub length: u32,
}

/// A request that a member has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Started {
    /// Its tag.
    pub tag: u32,
    /// When it ends. The driver must call [`Member::finish`](crate::Member::finish) at exactly that instant.
    pub ends: Instant,
}
