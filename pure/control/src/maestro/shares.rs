//! Sharing out by priority, and cutting to what there is: the steps that the arbiter takes around the
//! program.

/// Deals `amount` in proportion to `weights`, which are above zero. Nobody gets more than its `room`: the
/// others get what it leaves. If all are full, the rest is left over.
pub(crate) fn deal(amount: f64, rooms: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..rooms.len()).collect();
    let filled_at = |i: &usize| rooms[*i].max(0.0) / weights[*i];
    order.sort_unstable_by(|a, b| filled_at(a).total_cmp(&filled_at(b)).then(a.cmp(b)));
    let mut dealt = vec![0.0; rooms.len()];
    let mut amount = amount.max(0.0);
    // Summed from the back. Subtracting one weight after the other from the sum would leave all rounding to
    // the last.
    let mut behind = 0.0;
    let mut weights_from: Vec<f64> = order
        .iter()
        .rev()
        .map(|i| {
            behind += weights[*i];
            behind
        })
        .collect();
    weights_from.reverse();
    for (i, weights_left) in order.into_iter().zip(weights_from) {
        dealt[i] = (amount * weights[i] / weights_left).clamp(0.0, rooms[i].max(0.0)).min(amount);
        amount -= dealt[i];
    }
    dealt
}

/// Cuts `amounts` so that their sum is at most `sum`: each loses the same part of what it has above its
/// minimum. If the minima alone are more than `sum`, the result is the minima.
pub(crate) fn cut_to(sum: f64, amounts: &mut [f64], minima: &[f64]) {
    let (wanted, least) = (amounts.iter().sum::<f64>(), minima.iter().sum::<f64>());
    if wanted <= sum {
        return;
    }
    let part = if wanted > least { ((sum - least) / (wanted - least)).clamp(0.0, 1.0) } else { 0.0 };
    for (amount, minimum) in amounts.iter_mut().zip(minima) {
        *amount = minimum + part * (*amount - minimum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(amounts: &[f64]) -> Vec<f64> {
        amounts.iter().map(|amount| (amount * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn what_is_dealt_is_in_proportion_to_the_weights() {
        assert_eq!(rounded(&deal(10.0, &[100.0, 100.0], &[4.0, 1.0])), [8.0, 2.0]);
    }

    #[test]
    fn who_is_full_leaves_its_part_to_the_others() {
        assert_eq!(rounded(&deal(10.0, &[2.0, 100.0, 100.0], &[8.0, 1.0, 1.0])), [2.0, 4.0, 4.0]);
        assert_eq!(rounded(&deal(10.0, &[2.0, 3.0], &[1.0, 1.0])), [2.0, 3.0]);
        assert_eq!(rounded(&deal(10.0, &[0.0, -1.0], &[1.0, 1.0])), [0.0, 0.0]);
    }

    #[test]
    fn nobody_is_cut_below_its_minimum() {
        let mut amounts = [10.0, 30.0];
        cut_to(24.0, &mut amounts, &[2.0, 6.0]);
        assert_eq!(rounded(&amounts), [6.0, 18.0]);
        cut_to(4.0, &mut amounts, &[2.0, 6.0]);
        assert_eq!(rounded(&amounts), [2.0, 6.0]);
    }

    #[test]
    fn what_fits_is_not_cut() {
        let mut amounts = [10.0, 30.0];
        cut_to(40.0, &mut amounts, &[1.0, 1.0]);
        assert_eq!(rounded(&amounts), [10.0, 30.0]);
    }
}
