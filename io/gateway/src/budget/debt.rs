//! Finds charges that are lost. In a debug build, the code that drops a charge without giving it back panics
//! there.
//!
//! A reference to the budget in each charge would do the same in every build, and would cost each request two
//! counters. In a release build both types here are empty.

#[cfg(debug_assertions)]
use std::rc::{Rc, Weak};

/// The counter by which a budget lends. When the budget goes, as its thread ends, no charge owes it anything.
#[derive(Default, Debug)]
pub(super) struct Lender(#[cfg(debug_assertions)] Rc<()>);

/// The debt of a charge to its budget.
#[must_use = "a debt is paid"]
#[derive(Debug)]
pub(super) struct Debt(#[cfg(debug_assertions)] Weak<()>);

impl Lender {
    /// Lends something.
    pub(super) fn lend(&self) -> Debt {
        Debt(
            #[cfg(debug_assertions)]
            Rc::downgrade(&self.0),
        )
    }
}

impl Debt {
    /// Gives it back.
    pub(super) fn pay(self) {
        #[cfg(debug_assertions)]
        std::mem::forget(self);
    }
}

#[cfg(debug_assertions)]
impl Drop for Debt {
    fn drop(&mut self) {
        let is_owed = self.0.strong_count() > 0;
        debug_assert!(
            !is_owed || std::thread::panicking(),
            "a charge was lost: it has to be given back to its budget"
        );
    }
}
