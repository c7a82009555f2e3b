//! For tests: the scenarios of the experiments.

use weir_lab::delay::Scenario;
use weir_lab::library::Library;

/// The scenario of an experiment.
pub(crate) fn scenario(id: &str) -> Scenario {
    let library = Library::embedded().expect("the experiments are good");
    let experiment = library.matching(id).first().map(|experiment| experiment.delay.clone());
    experiment.flatten().expect("it is an experiment before a target")
}
