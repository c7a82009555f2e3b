//! The program compared with a solver that knows nothing of its structure, and what holds for every solution.

use good_lp::{Expression, ProblemVariables, Solution, SolverModel, constraint, microlp, variable};
use proptest::prelude::*;

use super::*;

/// An application as the arbiter has it: in shares of the total.
#[derive(Clone, Copy, Debug)]
struct Application {
    priority: f64,
    performance: f64,
    slope: f64,
    lower: f64,
    upper: f64,
}

impl Application {
    fn range(self) -> Range {
        let Self { priority, performance, slope, lower, upper } = self;
        let error = |u: f64| priority * (1.0 - performance - slope * (u - f64::midpoint(lower, upper)));
        Range { lower, upper, error_at_lower: error(lower), error_at_upper: error(upper) }
    }
}

/// Many applications are alike, so that ties are frequent.
fn application(slopes: BoxedStrategy<f64>) -> impl Strategy<Value = Application> {
    let priority = prop_oneof![Just(1.0), Just(4.0), 0.1..10.0];
    let performance = prop_oneof![Just(0.5), Just(1.0), 0.0..3.0];
    let lower = prop_oneof![Just(0.05), 0.0..0.3];
    let width = prop_oneof![Just(0.1), Just(0.0), 0.0..0.1];
    (priority, performance, slopes, lower, width).prop_map(|(priority, performance, slope, lower, width)| {
        Application { priority, performance, slope, lower, upper: lower + width }
    })
}

fn any_slope() -> BoxedStrategy<f64> {
    prop_oneof![Just(1.0), Just(0.0), 0.0..20.0].boxed()
}

fn steep() -> BoxedStrategy<f64> {
    (0.2..20.0).boxed()
}

/// Applications, and where the sum lies between the least and the most that they may have.
fn programs(slopes: BoxedStrategy<f64>) -> impl Strategy<Value = (Vec<Application>, f64)> {
    let way = prop_oneof![Just(0.0), Just(1.0), Just(0.5), 0.0..1.0];
    (prop::collection::vec(application(slopes), 1..12), way)
}

fn ranges_of(applications: &[Application]) -> Vec<Range> {
    applications.iter().map(|application| application.range()).collect()
}

fn sum_at(ranges: &[Range], way: f64) -> f64 {
    ranges.iter().map(|range| range.lower + way * (range.upper - range.lower)).sum()
}

fn error(range: &Range, amount: f64) -> f64 {
    let width = range.upper - range.lower;
    let way = if width > 0.0 { (amount - range.lower) / width } else { 0.0 };
    range.error_at_lower + way * (range.error_at_upper - range.error_at_lower)
}

/// The width of the band in which an allocation's errors lie.
fn band(ranges: &[Range], amounts: &[f64]) -> f64 {
    let errors = || ranges.iter().zip(amounts).map(|(range, amount)| error(range, *amount));
    errors().fold(f64::MIN, f64::max) - errors().fold(f64::MAX, f64::min)
}

/// The width of the narrowest band, as a simplex library finds it.
fn narrowest(ranges: &[Range], sum: f64) -> f64 {
    let mut variables = ProblemVariables::new();
    let (highest, lowest) = (variables.add(variable()), variables.add(variable()));
    // The variables are parts of the ranges, so that a range without width can stay.
    let parts: Vec<_> = ranges.iter().map(|_| variables.add(variable().min(0.0).max(1.0))).collect();
    let mut problem = variables.minimise(highest - lowest).using(microlp);
    let mut total = Expression::from(0.0);
    for (range, part) in ranges.iter().zip(parts) {
        let fall = range.error_at_lower - range.error_at_upper;
        problem.add_constraint(constraint!(range.error_at_lower - fall * part <= highest));
        problem.add_constraint(constraint!(range.error_at_lower - fall * part >= lowest));
        total += range.lower + (range.upper - range.lower) * part;
    }
    problem.add_constraint(constraint!(total == sum));
    let solution = problem.solve().expect("the sum can be met");
    solution.value(highest) - solution.value(lowest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_solver_finds_a_narrower_band((applications, way) in programs(any_slope())) {
        let ranges = ranges_of(&applications);
        let sum = sum_at(&ranges, way);
        let amounts = solve(&ranges, sum);
        prop_assert!((amounts.iter().sum::<f64>() - sum).abs() < 1e-9);
        for (range, amount) in ranges.iter().zip(&amounts) {
            prop_assert!((range.lower - 1e-12..=range.upper + 1e-12).contains(amount));
        }
        let (found, optimal) = (band(&ranges, &amounts), narrowest(&ranges, sum));
        prop_assert!((found - optimal).abs() < 1e-6, "{} against {}", found, optimal);
    }

    #[test]
    fn a_slight_change_of_the_input_changes_the_allocation_slightly(
        (applications, way) in programs(steep()),
        moved in prop::collection::vec([-1.0..1.0, -1.0..1.0, -1.0..1.0, -1.0..1.0, 0.0..1.0], 12),
    ) {
        const SLIGHTLY: f64 = 1e-7;
        let near: Vec<Application> = applications.iter().zip(&moved).map(|(application, moved)| Application {
            priority: application.priority + SLIGHTLY * moved[0],
            performance: application.performance + SLIGHTLY * moved[1],
            slope: application.slope + SLIGHTLY * moved[2],
            lower: application.lower + SLIGHTLY * moved[3],
            upper: application.upper + SLIGHTLY * (moved[3] + moved[4]),
        }).collect();
        let (ranges, near) = (ranges_of(&applications), ranges_of(&near));
        let (here, there) = (solve(&ranges, sum_at(&ranges, way)), solve(&near, sum_at(&near, way)));
        for (here, there) in here.iter().zip(&there) {
            prop_assert!((here - there).abs() < 1e4 * SLIGHTLY, "{} {}", here, there);
        }
    }

    #[test]
    fn nobodys_error_could_be_closer_to_that_of_another((applications, way) in programs(steep())) {
        let ranges = ranges_of(&applications);
        let amounts = solve(&ranges, sum_at(&ranges, way));
        for (one, of_one) in ranges.iter().zip(&amounts) {
            for (other, of_other) in ranges.iter().zip(&amounts) {
                let could_move = *of_one < one.upper - 1e-9 && *of_other > other.lower + 1e-9;
                let is_worse_off = error(one, *of_one) > error(other, *of_other) + 1e-6;
                prop_assert!(!(could_move && is_worse_off), "{:?}", amounts);
            }
        }
    }
}
