//! The figures that each claim needs: one function for each claim, found by the id of its experiment.

use crate::study::Claim;
use crate::{facade, maestro, packet_delay, transfers};

/// The claim of this id.
pub(crate) fn claim(id: &str) -> Option<Claim> {
    all().find(|(known, _)| *known == id).map(|(_, claim)| claim)
}

/// The ids of all claims.
pub(crate) fn ids() -> Vec<&'static str> {
    all().map(|(id, _)| id).collect()
}

fn all() -> impl Iterator<Item = (&'static str, Claim)> {
    let of_volumes = facade::CLAIMS.into_iter().chain(maestro::CLAIMS);
    of_volumes.chain(packet_delay::CLAIMS).chain(transfers::CLAIMS)
}

#[cfg(test)]
mod tests {
    use crate::study::testing::records;

    #[test]
    fn without_records_no_figure_has_a_value_and_nothing_panics() {
        for id in super::ids() {
            let figures = super::claim(id).expect("a claim")(&records(Vec::new()));
            let empty = figures.iter().all(|figure| figure.value.is_none());
            assert!(!figures.is_empty() && empty, "{id}: {figures:?}");
        }
    }
}
