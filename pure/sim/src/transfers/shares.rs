//! How much each of some takers gets of something.

/// One that takes a share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Taker {
    /// Its share, compared with others; above zero.
    pub weight: f64,
    /// It takes no more than that.
    pub most: f64,
}

/// What each gets of `all`, in the same unit: shares by weight, and what one cannot take goes to the others.
pub fn shares(all: f64, takers: &[Taker]) -> Vec<f64> {
    let mut order: Vec<_> = (0..takers.len()).collect();
    // Whoever has enough the soonest comes first, and what it leaves is known before the next.
    order.sort_by(|a, b| {
        let full = |place: usize| takers[place].most / takers[place].weight;
        full(*a).total_cmp(&full(*b))
    });
    let mut weights: f64 = takers.iter().map(|taker| taker.weight).sum();
    let (mut left, mut gets) = (all, vec![0.0; takers.len()]);
    for place in order {
        let Taker { weight, most } = takers[place];
        gets[place] = (left * weight / weights).min(most);
        left -= gets[place];
        weights -= weight;
    }
    gets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_cannot_take_the_others_get_by_their_weights() {
        let taker = |weight, most| Taker { weight, most };
        let get = |all, takers: &[Taker]| {
            shares(all, takers).into_iter().map(|got| (got * 10.0).round() / 10.0).collect::<Vec<_>>()
        };
        assert_eq!(get(90.0, &[taker(1.0, 100.0), taker(2.0, 100.0)]), [30.0, 60.0]);
        assert_eq!(get(90.0, &[taker(1.0, 100.0), taker(1.0, 10.0), taker(3.0, 100.0)]), [20.0, 10.0, 60.0]);
        assert_eq!(get(90.0, &[taker(1.0, 20.0), taker(1.0, 20.0)]), [20.0, 20.0]);
        assert_eq!(get(90.0, &[]), [] as [f64; 0]);
    }
}
