//! Every scheduler of the crate obeys the rules of the conformance suite.

use weir_model::{QueueDepth, TimeShare};
use weir_sched::{Edf, PassThrough};
use weir_testkit::{OracleEdf, conformance, gate_conformance, scheduler_conformance};

gate_conformance!(edf, TimeShare::PERCENT, edf);
gate_conformance!(edf_without_a_share, TimeShare::ZERO, |depth| Edf::new(depth, TimeShare::ZERO));
gate_conformance!(oracle, TimeShare::PERCENT, oracle);
scheduler_conformance!(pass_through, |_| PassThrough::new());

fn edf(depth: QueueDepth) -> Edf {
    Edf::new(depth, TimeShare::PERCENT)
}

fn oracle(depth: QueueDepth) -> OracleEdf {
    OracleEdf::new(depth, TimeShare::PERCENT)
}

#[test]
fn edf_decides_as_an_exhaustive_search_does() {
    conformance::behaves_like(edf, oracle);
    let (edf, oracle) =
        (|depth| Edf::new(depth, TimeShare::MAX), |depth| OracleEdf::new(depth, TimeShare::MAX));
    conformance::behaves_like(edf, oracle);
}

#[test]
fn pass_through_needs_no_depth() {
    conformance::behaves_like(|_| PassThrough::new(), |_| PassThrough::default());
}
