//! What a controller reports about its array, as tables for people.

use comfy_table::presets;
use weir_status::{ArrayGateway, ArrayStatus, ArrayVolume};

use crate::dash;
use crate::sharing::{grants, measured, percent, table, target};

const GATEWAYS: [&str; 4] = ["gateway", "state", "last report", "may hold"];
const VOLUMES: [&str; 7] = ["volume", "desired", "priority", "effective", "achieved", "of target", "why"];

/// The array in one line, a row for each gateway, and a row for each volume.
pub fn array(status: &ArrayStatus) -> String {
    let ArrayStatus { pool, sharing, held, gateways, volumes } = status;
    let total = sharing.total_concurrency.map_or(dash(), |total| total.to_string());
    let probed = if sharing.is_probed { " (auto, found by probing)" } else { "" };
    let held = held.map_or("not known yet".to_owned(), |held| held.to_string());
    let case = sharing.case.map(|case| format!("; {case}")).unwrap_or_default();
    let style = presets::UTF8_HORIZONTAL_ONLY;
    let gateways = table(style, &GATEWAYS, gateways.iter().map(gateway), |column| column < 2);
    let last = VOLUMES.len() - 1;
    let volumes = table(style, &VOLUMES, volumes.iter().map(volume), |column| column == 0 || column == last);
    format!(
        "pool {pool}: at most {total} requests at the array{probed}, gateways may hold {held} in all{case}\n\
         {gateways}\n\n{volumes}"
    )
}

fn gateway(gateway: &ArrayGateway) -> [String; GATEWAYS.len()] {
    [
        gateway.name.clone(),
        if gateway.connected { "connected" } else { "away" }.to_owned(),
        gateway.reported_age_s.map_or(dash(), |age| format!("{age:.1} s ago")),
        gateway.held.to_string(),
    ]
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
