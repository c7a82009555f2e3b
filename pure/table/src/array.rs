//! What a controller reports about its array, as tables for people.

use comfy_table::{TableStyle, presets};
use weir_status::{ArrayGateway, ArrayStatus, ArrayVolume, GatewayPromises, PoolSharing};

use crate::sharing::{grants, measured, percent, target};
use crate::{dash, table};

const GATEWAYS: [&str; 4] = ["gateway", "state", "last report", "may hold"];
const STANDINGS: [&str; 5] = ["gateway", "state", "last word", "worst off", "background volumes"];
const VOLUMES: [&str; 7] = ["volume", "desired", "priority", "effective", "achieved", "of target", "why"];
const STYLE: TableStyle = presets::UTF8_HORIZONTAL_ONLY;

/// The array in one line, a row for each gateway, and a row for each volume that is shared out; in `width`
/// columns.
pub fn array(status: &ArrayStatus, width: Option<u16>) -> String {
    match &status.sharing {
        Some(sharing) => shared_out(status, sharing, width),
        None => promised(status, width),
    }
}

fn shared_out(status: &ArrayStatus, sharing: &PoolSharing, width: Option<u16>) -> String {
    let total = sharing.total_concurrency.map_or(dash(), |total| total.to_string());
    let probed = if sharing.is_probed { " (auto, found by probing)" } else { "" };
    let held = status.held.map_or("not known yet".to_owned(), |held| held.to_string());
    let case = sharing.case.map(|case| format!("; {case}")).unwrap_or_default();
    let gateways =
        table(STYLE, &GATEWAYS, status.gateways.iter().map(gateway), |column| column < 2, &[], width);
    let last = VOLUMES.len() - 1;
    let is_text = |column| column == 0 || column == last;
    let volumes = table(STYLE, &VOLUMES, status.volumes.iter().map(volume), is_text, &[2, 4], width);
    let pool = &status.pool;
    format!(
        "pool {pool}: at most {total} requests at the array{probed}, gateways may hold {held} in all{case}\n\
         {gateways}\n\n{volumes}"
    )
}

fn promised(status: &ArrayStatus, width: Option<u16>) -> String {
    let rows = status.gateways.iter().map(standing);
    let gateways = table(STYLE, &STANDINGS, rows, |column| column != 2, &[2], width);
    format!("pool {}: each gateway hears how the promises of the others stand\n{gateways}", status.pool)
}

fn gateway(gateway: &ArrayGateway) -> [String; GATEWAYS.len()] {
    let held = gateway.held.map_or(dash(), |held| held.to_string());
    [gateway.name.clone(), state(gateway), age(gateway), held]
}

fn standing(gateway: &ArrayGateway) -> [String; STANDINGS.len()] {
    let worst = |promises: GatewayPromises| match promises.percent {
        Some(percent) => format!("at {percent:.0} % of its limit"),
        None if promises.is_promised => "silent".to_owned(),
        None => "nothing is promised".to_owned(),
    };
    let background = |promises: GatewayPromises| match promises.background? {
        0 => Some("one request at a time".to_owned()),
        bound => Some(format!("at most {bound} at the device")),
    };
    [
        gateway.name.clone(),
        state(gateway),
        age(gateway),
        gateway.promises.map_or(dash(), worst),
        gateway.promises.and_then(background).unwrap_or_else(dash),
    ]
}

fn state(gateway: &ArrayGateway) -> String {
    if gateway.connected { "connected" } else { "away" }.to_owned()
}

fn age(gateway: &ArrayGateway) -> String {
    gateway.reported_age_s.map_or(dash(), |age| format!("{age:.1} s ago"))
}

fn volume(volume: &ArrayVolume) -> [String; VOLUMES.len()] {
    let sharing = &volume.sharing;
    let (desired, achieved) = (&sharing.desired, sharing.achieved.as_ref());
    [
        volume.name.clone(),
        desired.target.as_ref().map_or(dash(), target),
        desired.priority.to_string(),
        grants(&sharing.effective),
        measured(desired.target.as_ref(), achieved.map(|achieved| achieved.value)),
        achieved.map_or(dash(), |achieved| percent(achieved.percent)),
        sharing.reason.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use weir_status::ControlKind;

    use super::*;

    #[test]
    fn under_the_law_of_promises_each_gateway_is_shown_with_how_its_promises_stand() {
        let gateway = |name: &str, promises| ArrayGateway {
            name: name.to_owned(),
            connected: true,
            reported_age_s: Some(0.04),
            held: None,
            promises,
        };
        let strained = GatewayPromises { is_promised: true, percent: Some(96.6), background: None };
        let hog = GatewayPromises { is_promised: false, percent: None, background: Some(3) };
        let status = ArrayStatus {
            pool: "p".to_owned(),
            control: ControlKind::Promise,
            sharing: None,
            held: None,
            gateways: vec![gateway("a", Some(strained)), gateway("b", Some(hog)), gateway("c", None)],
            volumes: Vec::new(),
        };
        let shown = array(&status, None);
        let row = |name| shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
        assert!(row("a ").contains("0.0 s ago") && row("a ").contains("at 97 % of its limit"), "{shown}");
        assert!(row("b ").contains("nothing is promised") && row("b ").contains("at most 3"), "{shown}");
        assert!(row("c ").contains("connected") && row("c ").trim_end().ends_with('-'), "{shown}");
    }
}
