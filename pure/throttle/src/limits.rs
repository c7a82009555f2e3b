//! How much of a survey is looked at: what peers can make grow has a bound.
//!
//! Initiators can open sessions and connections as they like, and the agent must go on at its pace. What is
//! beyond a bound is left out, in the order of the survey: it is neither measured nor delayed. A notice and
//! the report say how many were left out.

/// Sessions, all targets together.
pub const MOST_SESSIONS: usize = 4_096;
/// Connections at the portals of all targets together.
pub const MOST_CONNECTIONS: usize = 16_384;
/// Devices behind LUNs.
pub const MOST_DEVICES: usize = 8_192;
/// Resources that devices share. Those without a leaf are neither measured nor guarded.
pub const MOST_RESOURCES: usize = 1_024;
/// Notices that nobody has fetched. The oldest ones are kept, and the others are counted.
pub const MOST_NOTICES: usize = 256;

/// How many of each sort were left out of the last survey.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LeftOut {
    /// Sessions beyond [`MOST_SESSIONS`].
    pub sessions: usize,
    /// Connections beyond [`MOST_CONNECTIONS`].
    pub connections: usize,
    /// Devices beyond [`MOST_DEVICES`], and those of resources beyond [`MOST_RESOURCES`].
    pub devices: usize,
}

impl LeftOut {
    /// True if the whole survey was looked at.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}
