//! The linear program of Maestro §3.2.2, solved exactly in O(N log N).
//!
//! ```text
//! minimise ε subject to   e_i(u_i) - e_j(u_j) <= ε    for all i, j, where e_i(u) = p_i (1 - f_i(u))
//!                         lo_i <= u_i <= hi_i
//!                         u_1 + ... + u_N = S
//! ```
//!
//! A general solver sees N² constraints. Written with the ends of a band, `L <= e_i <= H`, there are 2 N, and
//! a solver still needs milliseconds for a thousand applications. But the program has a structure: each `e_i`
//! falls in `u_i`, so the two ends decouple:
//!
//! - `H`, the upper end, is feasible if all errors can get below it with what there is. That is:
//!   `H >= e_i(hi_i)` for all, and `sum a_i(H) <= S`, where `a_i(H)` is the least allocation in the range
//!   with `e_i <= H`. So the smallest is `H* = max(max e_i(hi_i), root of sum a_i(H) = S)`.
//! - `L`, the lower end, likewise: `L* = min(min e_i(lo_i), root of sum b_i(L) = S)`, where `b_i(L)` is the
//!   largest allocation with `e_i >= L`.
//!
//! No `ε` is less than `H* - L*`, and one **level** `E` reaches it. Each application gets the allocation in
//! its range whose error is closest to `E`, `u_i(E) = clamp(e_i^-1(E), lo_i, hi_i)`, where `E` is such that
//! the sum is `S`. Proof, for the upper end:
//!
//! - An application at neither end of its range has the error `E`.
//! - One at `hi_i` has at least `E`. If it has more, no solution gives it less.
//! - If any has more than `E`, the largest `e_i(hi_i)` is `H*`.
//! - If none has, `a_i(E) = u_i`, and `E` is the root for `H*`.
//!
//! The same holds from below for `L*`.
//!
//! It follows that `L* <= H*` wherever the sum can be met. Otherwise there would be one allocation in which
//! each error is at most `H*`, and another in which each is at least `L* > H*`. The first would be larger for
//! every application, yet have the same sum.
//!
//! **How `E` is found.** `sum u_i(E)` falls in `E`, and is linear between the errors at the ends of the
//! ranges. The solver sorts these errors, and finds by halving the two between which the sum is met. The
//! result lies between the two allocations there: one factor for all applications gives the sum.
//!
//! **Ties.** As soon as an application is held at an end of its range, the program leaves the others free
//! within the band. A simplex method then picks a corner, and another corner after a slight change of the
//! input. The level picks the one allocation in which no error could be brought closer to that of others. It
//! equals the optimum of the smaller program that remains once every application at an end of its range is
//! fixed there. Unless slopes are zero, the level is unique. `u_i(E)` and the sum are continuous in all
//! inputs, so the allocation is, too.
//!
//! **A slope of zero** makes a step of the ramp: the whole range has one error. If the level meets such a
//! step, the factor deals out the range. Several steps at the same level get the same part of their ranges.

/// What an application may get, and its weighted error at both ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// `lo`.
    pub lower: f64,
    /// `hi`, at least `lo`.
    pub upper: f64,
    /// `e(lo)`.
    pub error_at_lower: f64,
    /// `e(hi)`, at most `e(lo)`.
    pub error_at_upper: f64,
}

/// Errors at the two ends that differ by less are the same: the range is a step and no ramp.
const FLAT: f64 = 1e-13;

/// The allocation, in the order of `ranges`, whose sum is `sum` and whose errors lie in the narrowest band.
/// If the sum cannot be met, all upper ends or all lower ends, whichever come closest.
pub fn solve(ranges: &[Range], sum: f64) -> Vec<f64> {
    let levels = Levels::of(ranges);
    let (mut above, mut below) = (0, levels.positions());
    // The sum at `above` is at least what is wanted. At `below` it is less, or `below` is past the last
    // position.
    if below == 0 || levels.sum(above) <= sum {
        return ranges.iter().map(|range| range.upper).collect();
    }
    while below - above > 1 {
        let middle = above + (below - above) / 2;
        if levels.sum(middle) >= sum { above = middle } else { below = middle }
    }
    let below = below.min(levels.positions() - 1);
    let (at_above, at_below) = (levels.sum(above), levels.sum(below));
    let way =
        if at_above > at_below { ((at_above - sum) / (at_above - at_below)).clamp(0.0, 1.0) } else { 0.0 };
    let between = |range: &Range| {
        let (from, to) = (levels.allocation(range, above), levels.allocation(range, below));
        from + way * (to - from)
    };
    ranges.iter().map(between).collect()
}

/// The levels at which the sum of the allocations bends or jumps, each twice: just before its jump, and
/// after.
struct Levels<'a> {
    ranges: &'a [Range],
    sorted: Vec<f64>,
}

impl<'a> Levels<'a> {
    fn of(ranges: &'a [Range]) -> Self {
        let mut sorted: Vec<f64> =
            ranges.iter().flat_map(|range| [range.error_at_upper, range.error_at_lower]).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.dedup();
        Self { ranges, sorted }
    }

    const fn positions(&self) -> usize {
        2 * self.sorted.len()
    }

    /// The sum of the allocations; falls from position to position.
    fn sum(&self, position: usize) -> f64 {
        self.ranges.iter().map(|range| self.allocation(range, position)).sum()
    }

    fn allocation(&self, range: &Range, position: usize) -> f64 {
        let (level, is_after) = (self.sorted[position / 2], position % 2 == 1);
        let Range { lower, upper, error_at_lower, error_at_upper } = *range;
        let height = error_at_lower - error_at_upper;
        if height <= FLAT {
            let is_reached = level > error_at_upper || (is_after && level >= error_at_upper);
            return if is_reached { lower } else { upper };
        }
        lower + (upper - lower) * ((error_at_lower - level) / height).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
