//! Clusters keep their rules, and the checkers find each rule that is broken.

use weir_leases::Terms;

use super::*;
use crate::check::Breach;
use crate::world::Fingerprint;

fn ran(seed: u64, rules: &dyn Rules) -> (Result<Outcome, Violation>, Fingerprint) {
    let mut fingerprint = Fingerprint::new();
    (run_with(&scenario(seed), rules, &mut fingerprint), fingerprint)
}

#[test]
fn clusters_keep_their_rules_whatever_goes_wrong() {
    for seed in 0..20 {
        let (outcome, _) = ran(seed, &Kept);
        outcome.unwrap_or_else(|violation| panic!("{violation}"));
    }
}

#[test]
fn a_seed_gives_the_same_cluster_and_the_same_run_every_time() {
    for seed in 0..3 {
        assert_eq!(scenario(seed), scenario(seed));
        assert_eq!(ran(seed, &Kept), ran(seed, &Kept));
        assert_ne!(ran(seed, &Kept).1, ran(seed + 1, &Kept).1);
    }
}

/// Whether the checkers find this breach in one of the seeds that a test has time for.
fn found(rules: &dyn Rules, is_it: impl Fn(&Breach) -> bool) -> bool {
    let of_gateway = |what: Box<Breach>| match *what {
        Breach::AtGateway { what, .. } => *what,
        other => other,
    };
    (0..40).any(|seed| ran(seed, rules).0.is_err_and(|violation| is_it(&of_gateway(violation.what))))
}

#[test]
fn a_lease_that_an_engine_does_not_end_is_found() {
    struct Endless;
    impl Rules for Endless {
        fn until(&self, _terms: &Terms) -> Instant {
            Instant::FAR_FUTURE
        }
    }
    assert!(found(&Endless, |what| matches!(what, Breach::LeaseOutlived { .. })));
}

#[test]
fn a_controller_that_forgets_what_is_not_acknowledged_is_found() {
    struct Forgetful;
    impl Rules for Forgetful {
        fn forgets_unacknowledged(&self) -> bool {
            true
        }
    }
    assert!(found(&Forgetful, |what| matches!(what, Breach::TotalExceeded { .. })));
}

#[test]
fn a_fallback_that_is_not_taken_is_found() {
    struct Modest;
    impl Rules for Modest {
        fn takes_fallback(&self) -> bool {
            false
        }
    }
    assert!(found(&Modest, |what| matches!(what, Breach::NotFallenBack { .. })));
}

#[test]
fn requests_that_no_bound_counts_are_found_at_the_array() {
    struct Doubled;
    impl Rules for Doubled {
        fn copies(&self) -> u32 {
            2
        }
    }
    assert!(found(&Doubled, |what| matches!(what, Breach::ArrayOverfull { .. })));
}

#[test]
fn a_gateway_that_gets_nothing_done_is_found() {
    struct Deaf;
    impl Rules for Deaf {
        fn hears_answers(&self, gateway: usize) -> bool {
            gateway != 0
        }
    }
    assert!(found(&Deaf, |what| matches!(what, Breach::GatewayStarved { gateway: 0, .. })));
}

#[test]
fn a_gateway_that_is_left_without_grants_is_found() {
    struct Stale;
    impl Rules for Stale {
        fn until(&self, _terms: &Terms) -> Instant {
            Instant::ORIGIN
        }
    }
    assert!(found(&Stale, |what| matches!(what, Breach::LeftAlone { .. })));
}
