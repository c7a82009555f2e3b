//! One figure from several rounds.
//!
//! The figure is a median. A mean would follow the one round in which another user kept the shared disk busy.

/// The middle of the values; between two, the middle of these. NaN if there are none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        let close = |values: &[f64], expected: f64| (median(values.iter().copied()) - expected).abs() < 1e-12;
        assert!(close(&[3.0, 100.0, 1.0], 3.0));
        assert!(close(&[4.0, 1.0, 2.0, 3.0], 2.5));
        assert!(close(&[7.0], 7.0));
        assert!(median([]).is_nan());
    }
}
