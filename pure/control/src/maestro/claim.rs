//! An application before its share is decided: its claim (what it had, and what it made of that) and its
//! requirement.
//!
//! The requirement estimator makes the requirement from the claim. The arbiter reads both. Estimator and
//! arbiter do not use each other.

use super::setting::BoundBy;

/// `l`: how far an allocation may move in an interval, as a share of the total (§3.2.1).
pub(crate) const STEP: f64 = 0.05;

/// The claim of an application; allocations are in requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Claim {
    /// `p`.
    pub(crate) priority: f64,
    /// `f`; `None` without a performance.
    pub(crate) model: Option<Model>,
    /// `U(t)`.
    pub(crate) had: f64,
    /// How many requests it can use; `None`: more than it had.
    pub(crate) usable: Option<f64>,
    /// Whether it falls short though it cannot use more.
    pub(crate) is_hindered: bool,
    /// The least that it keeps.
    pub(crate) minimum: f64,
    /// The most that it may have, at least the minimum.
    pub(crate) limit: f64,
}

/// `f(U) = y + β (U - U(t)) / C`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Model {
    /// `y(t)`.
    pub(crate) performance: f64,
    /// `β`, not below zero.
    pub(crate) slope: f64,
}

/// The requirement of an application.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Requirement {
    /// `Û`, in requests.
    pub(crate) amount: f64,
    /// `Û` without the step limit.
    pub(crate) unhurried: f64,
    /// What cut it, if anything did.
    pub(crate) bound_by: BoundBy,
}
