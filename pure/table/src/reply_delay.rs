//! A table of the pools in which replies to heavy writers are held.

use comfy_table::presets;
use weir_status::{PoolStatus, ReplyDelayStatus};

use crate::{table, whole_latency};

const HEADER: [&str; 5] = ["pool", "read wait", "threshold", "reply delay", "heavy writers"];
const SPARE: [usize; 1] = [2];

/// A row for each pool, with what its one-sided PID measures and decides; `None` without such a pool.
pub(crate) fn pools(pools: &[&PoolStatus], width: Option<u16>) -> Option<String> {
    let rows = pools.iter().filter_map(|pool| Some(row(pool, pool.reply_delay.as_ref()?)));
    let rows: Vec<_> = rows.collect();
    let style = presets::UTF8_HORIZONTAL_ONLY;
    (!rows.is_empty()).then(|| table(style, &HEADER, rows, |_| true, &SPARE, width))
}

fn row(pool: &PoolStatus, throttle: &ReplyDelayStatus) -> [String; HEADER.len()] {
    let ceiling = if throttle.is_at_ceiling { " (ceiling)" } else { "" };
    let heavy = pool.volumes.iter().filter(|volume| volume.is_heavy_writer);
    let names: Vec<_> = heavy.map(|volume| volume.name.as_str()).collect();
    [
        pool.name.clone(),
        whole_latency(throttle.wait_us),
        whole_latency(throttle.threshold_us),
        format!("{}{ceiling}", whole_latency(throttle.delay_us)),
        if names.is_empty() { "-".to_owned() } else { names.join(", ") },
    ]
}

#[cfg(test)]
mod tests {
    use weir_status::ControlKind;

    use super::*;

    fn pool(throttle: Option<ReplyDelayStatus>) -> PoolStatus {
        PoolStatus {
            name: "array1".to_owned(),
            control: ControlKind::Pid,
            depth_target: None,
            in_flight: 0,
            in_flight_peak: None,
            queued: 0,
            sharing: None,
            reply_delay: throttle,
            background: None,
            volumes: Vec::new(),
        }
    }

    #[test]
    fn the_table_has_the_delay_in_force_and_says_when_it_is_as_long_as_it_may_be() {
        let throttle =
            ReplyDelayStatus { threshold_us: 15_000, wait_us: 13_400, delay_us: 22_500, is_at_ceiling: true };
        let shown = pools(&[&pool(Some(throttle))], None).unwrap();
        for cell in ["array1", "13.40 ms", "15.00 ms", "22.50 ms (ceiling)"] {
            assert!(shown.contains(cell), "{shown}");
        }
        let less = ReplyDelayStatus { is_at_ceiling: false, ..throttle };
        assert!(!pools(&[&pool(Some(less))], None).unwrap().contains("ceiling"));
    }

    #[test]
    fn without_such_a_pool_there_is_no_table() {
        assert_eq!(pools(&[&pool(None)], None), None);
    }
}
