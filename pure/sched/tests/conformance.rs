//! Every scheduler of the crate, put through what all of them must obey.

use weir_sched::{Edf, PassThrough};
use weir_testkit::{OracleEdf, conformance, gate_conformance, scheduler_conformance};

gate_conformance!(edf, Edf::new);
gate_conformance!(oracle, OracleEdf::new);
scheduler_conformance!(pass_through, |_| PassThrough::new());

#[test]
fn edf_decides_as_an_exhaustive_search_does() {
    conformance::behaves_like(Edf::new, OracleEdf::new);
}

#[test]
fn pass_through_needs_no_depth() {
    conformance::behaves_like(|_| PassThrough::new(), |_| PassThrough::default());
}
