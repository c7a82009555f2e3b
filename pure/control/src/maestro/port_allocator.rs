//! How many requests each application may have at which port: the port allocator of Maestro §3.2.3.
//!
//! ```text
//! U_ij(t+1) = U_i(t+1) d_ij(t) / sum_k d_ik(t)    (4)
//! ```
//!
//! The paper rounds up, and gives each application at least one request at each port. With many applications
//! and ports, that is far more than the total, which the paper calls a limit. Here the sum over all
//! applications and ports is never more than the total, if the total has one request for each application at
//! each port. It takes two steps:
//!
//! 1. The applications' allocations are made whole. Each is rounded up as long as there is room; where room
//!    ends, the largest remainders are rounded up.
//! 2. Each whole allocation is dealt to the application's ports. A port whose part would be less than one
//!    gets one, at the cost of the others. The largest remainders get what is left.
//!
//! In one step, over sixteen ports at once, an application could lose sixteen requests to rounding.
//!
//! Both steps are continuous but for rounding: a small change of the input moves one request, and not two. Of
//! equal remainders, the first in the observer's order wins.

/// Less than this is rounding of floating-point numbers.
const NOTHING: f64 = 1e-9;

/// `amounts` as whole numbers, none less than its minimum. Each is rounded up, the largest remainders first,
/// as long as the sum is at most `total`; the rest are rounded down.
pub(crate) fn to_whole(amounts: &[f64], minima: &[u32], total: u32) -> Vec<u32> {
    let mut whole: Vec<u32> =
        amounts.iter().zip(minima).map(|(amount, minimum)| floor(amount + NOTHING).max(*minimum)).collect();
    let remainder = |i: usize| amounts[i] - f64::from(whole[i]);
    let mut order: Vec<(f64, usize)> =
        (0..amounts.len()).map(|i| (remainder(i), i)).filter(|(left, _)| *left > NOTHING).collect();
    order.sort_unstable_by(|(a, i), (b, j)| b.total_cmp(a).then(i.cmp(j)));
    let room = u64::from(total).saturating_sub(whole.iter().copied().map(u64::from).sum());
    for (_, i) in order.into_iter().take(usize::try_from(room).unwrap_or(usize::MAX)) {
        whole[i] += 1;
    }
    whole
}

/// Deals `amount` requests to the ports in proportion to their demand, at least one each. If no port has any
/// demand, the parts are equal. The sum is `amount`, or the number of ports if that is more.
pub(crate) fn to_ports(amount: u32, demand: &[f64]) -> Vec<u32> {
    let minima = vec![1; demand.len()];
    let any = demand.iter().sum::<f64>() > 0.0;
    let demand: Vec<f64> = if any { demand.to_vec() } else { vec![1.0; demand.len()] };
    to_whole(&with_one_each(f64::from(amount), &demand), &minima, amount)
}

/// Deals `amount` to the ports as the paper does: each part is rounded up, and is at least one. The sum may
/// be more than the amount.
pub(crate) fn rounded_up(amount: f64, demand: &[f64]) -> Vec<u32> {
    let sum: f64 = demand.iter().sum();
    let equal = 1.0 / f64::from(u32::try_from(demand.len()).unwrap_or(u32::MAX));
    let share = |demand: &f64| if sum > 0.0 { demand / sum } else { equal };
    demand.iter().map(|demand| floor((amount * share(demand) - NOTHING).ceil()).max(1)).collect()
}

/// Deals `amount` in proportion to the demand, except that a port whose part would be less than one gets one.
fn with_one_each(amount: f64, demand: &[f64]) -> Vec<f64> {
    let mut has_one = vec![false; demand.len()];
    loop {
        let (mut left, mut sum) = (amount, 0.0);
        for (has_one, demand) in has_one.iter().zip(demand) {
            if *has_one { left -= 1.0 } else { sum += demand }
        }
        let scale = if sum > 0.0 { left.max(0.0) / sum } else { 0.0 };
        let mut is_done = true;
        for (has_one, demand) in has_one.iter_mut().zip(demand) {
            let is_below = !*has_one && demand * scale < 1.0;
            *has_one |= is_below;
            is_done &= !is_below;
        }
        if is_done {
            let part = |(has_one, demand): (&bool, &f64)| if *has_one { 1.0 } else { demand * scale };
            return has_one.iter().zip(demand).map(part).collect();
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, which is what is meant
const fn floor(amount: f64) -> u32 {
    amount as u32
}

#[cfg(test)]
mod tests;
