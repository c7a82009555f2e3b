//! What background volumes may have of the device, where the law of promises holds them back.

use std::iter;

use comfy_table::presets;
use weir_status::{BackgroundStatus, CannotBeMet, LoweredRates, PoolStatus, WorstOff};

use crate::{dash, table};

const HEADER: [&str; 5] = ["pool", "background volumes", "promised volumes", "worst off", "cannot be met"];
const SPARE: [usize; 1] = [2];

/// A row for each pool under the law of promises; `None` without such a pool.
pub(crate) fn pools(pools: &[&PoolStatus], width: Option<u16>) -> Option<String> {
    let row = |pool: &&PoolStatus| {
        let background = pool.background.as_ref()?;
        let said = [allowed, promised, worst_off, cannot_be_met].map(|of| of(background));
        Some(iter::once(pool.name.clone()).chain(said))
    };
    let rows: Vec<_> = pools.iter().filter_map(row).collect();
    let style = presets::UTF8_HORIZONTAL_ONLY;
    (!rows.is_empty()).then(|| table(style, &HEADER, rows, |_| true, &SPARE, width))
}

/// What background volumes may have, which volume is worst off, and what cannot be met, in one line.
pub(crate) fn sentence(background: &BackgroundStatus) -> String {
    let background_volumes = format!("background volumes: {}", allowed(background));
    let is_held = background.promised_most.is_some() || background.lowered_rates.is_some();
    let promised_volumes = is_held.then(|| format!("; promised volumes: {}", promised(background)));
    let worst_off = format!("; worst off: {}", worst_off(background));
    let sentence = background_volumes + &promised_volumes.unwrap_or_default() + &worst_off;
    match &background.cannot_be_met {
        Some(_) => format!("{sentence}; cannot be met: {}", cannot_be_met(background)),
        None => sentence,
    }
}

fn allowed(background: &BackgroundStatus) -> String {
    let bound = bound(background);
    if background.has_lost_others { format!("{bound}, while other gateways are not heard of") } else { bound }
}

fn bound(background: &BackgroundStatus) -> String {
    match background.most {
        None => "no bound".to_owned(),
        Some(0) => {
            format!("one request at a time, {:.1} % of the device's time", background.share * 100.0)
        }
        Some(most) => at_most(most),
    }
}

fn promised(background: &BackgroundStatus) -> String {
    let in_order = background.promised_most.map(|most| format!("{}, the most urgent first", at_most(most)));
    let rates = background.lowered_rates.as_ref().map(rates);
    let held: Vec<_> = in_order.into_iter().chain(rates).collect();
    if held.is_empty() { "no bound".to_owned() } else { held.join("; ") }
}

fn rates(lowered: &LoweredRates) -> String {
    let (least, most) = (lowered.least_percent.round(), lowered.most_percent.round());
    let percent = if least < most { format!("{least} to {most} %") } else { format!("{most} %") };
    format!("rates lowered to {percent}")
}

fn at_most(most: u32) -> String {
    let requests = if most == 1 { "request" } else { "requests" };
    format!("at most {most} {requests} at the device")
}

fn worst_off(background: &BackgroundStatus) -> String {
    let worst = background.worst_off.as_ref();
    let name = |worst: &WorstOff| worst.volume.clone().unwrap_or("a volume of another gateway".to_owned());
    worst.map_or(dash(), |worst| format!("{}, at {:.0} % of its limit", name(worst), worst.percent))
}

fn cannot_be_met(background: &BackgroundStatus) -> String {
    let said = |CannotBeMet { volume, times, cause }: &CannotBeMet| {
        format!("{volume}, missed {}, because of {cause}", weir_status::times(*times))
    };
    background.cannot_be_met.as_ref().map_or(dash(), said)
}

#[cfg(test)]
mod tests {
    use weir_status::Cause;

    use super::*;

    fn background(most: Option<u32>, worst_off: Option<WorstOff>) -> BackgroundStatus {
        BackgroundStatus {
            most,
            share: 0.01,
            promised_most: None,
            lowered_rates: None,
            worst_off,
            cannot_be_met: None,
            has_lost_others: false,
        }
    }

    #[test]
    fn the_bound_is_said_in_words() {
        let said = |most| allowed(&background(most, None));
        assert_eq!(said(None), "no bound");
        assert_eq!(said(Some(12)), "at most 12 requests at the device");
        assert_eq!(said(Some(1)), "at most 1 request at the device");
        assert_eq!(said(Some(0)), "one request at a time, 1.0 % of the device's time");
    }

    #[test]
    fn promised_volumes_that_go_in_order_are_said_to() {
        let in_order = BackgroundStatus { promised_most: Some(7), ..background(Some(0), None) };
        assert!(
            sentence(&in_order)
                .contains("; promised volumes: at most 7 requests at the device, the most urgent"),
            "{}",
            sentence(&in_order)
        );
        assert_eq!(promised(&background(Some(0), None)), "no bound");
    }

    #[test]
    fn promised_rates_that_are_lowered_are_said_to_be() {
        let said = |most, least_percent, most_percent| {
            let lowered_rates = Some(LoweredRates { least_percent, most_percent });
            let held = background(None, None);
            promised(&BackgroundStatus { promised_most: most, lowered_rates, ..held })
        };
        assert_eq!(said(None, 70.04, 70.2), "rates lowered to 70 %");
        let both = said(Some(7), 59.6, 90.0);
        assert!(both.ends_with("first; rates lowered to 60 to 90 %"), "{both}");
        let lowered = Some(LoweredRates { least_percent: 70.0, most_percent: 70.0 });
        let lowered = BackgroundStatus { lowered_rates: lowered, ..background(None, None) };
        assert!(sentence(&lowered).contains("; promised volumes: rates lowered to 70 %"));
    }

    #[test]
    fn what_holds_among_several_gateways_is_said_in_words() {
        let worst = WorstOff { volume: None, percent: 97.0 };
        let heard = background(Some(4), Some(worst));
        assert!(sentence(&heard).ends_with("worst off: a volume of another gateway, at 97 % of its limit"));
        let lost = BackgroundStatus { has_lost_others: true, ..background(Some(4), None) };
        assert_eq!(allowed(&lost), "at most 4 requests at the device, while other gateways are not heard of");
    }

    #[test]
    fn the_volume_that_is_worst_off_is_named_with_how_close_it_is_to_its_limit() {
        let worst = WorstOff { volume: Some("db".to_owned()), percent: 83.4 };
        let line = sentence(&background(Some(4), Some(worst)));
        assert_eq!(
            line,
            "background volumes: at most 4 requests at the device; worst off: db, at 83 % of its limit"
        );
        assert!(sentence(&background(None, None)).ends_with("worst off: -"));
    }

    #[test]
    fn a_promise_that_cannot_be_met_is_named_with_by_how_much_and_because_of_what() {
        let said = |times, cause| {
            let cannot_be_met = Some(CannotBeMet { volume: "db".to_owned(), times, cause });
            cannot_be_met_of(&BackgroundStatus { cannot_be_met, ..background(Some(0), None) })
        };
        assert_eq!(
            said(1.44, Cause::Volume("mail".to_owned())),
            "db, missed 1.4 times, because of volume mail, to which something is promised too"
        );
        assert_eq!(said(10.0, Cause::OwnLimits), "db, missed 10 times or more, because of its own limits");
    }

    /// What the sentence ends with.
    fn cannot_be_met_of(background: &BackgroundStatus) -> String {
        let sentence = sentence(background);
        sentence.split_once("cannot be met: ").map(|(_, end)| end.to_owned()).unwrap_or(sentence)
    }
}
