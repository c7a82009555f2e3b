//! What a gateway and the parts of its process get in each step, and how a step ends.

use weir_model::{Instant, Span};

use super::device::Device;
use super::net::Net;
use super::rules::Rules;
use crate::check::Breach;
use crate::random::Prng;
use crate::world::{Observer, Outcome};

/// The result of a step; an error stops the run.
pub(super) type Going<T = ()> = Result<T, Box<Breach>>;

/// The parts of the cluster that a gateway works with.
pub(super) struct Surroundings<'a> {
    pub now: Instant,
    pub net: &'a mut Net,
    pub device: &'a mut Device,
    pub rules: &'a dyn Rules,
    pub handover: Span,
    pub random: &'a mut Prng,
    pub observer: &'a mut dyn Observer,
    pub outcome: &'a mut Outcome,
}
