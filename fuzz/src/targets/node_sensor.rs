//! What a storage node's agent answers to the coordinator of transfers. A piece is a line of the page.
//!
//! Another program may be at the address, and a proxy may add lines of its own.

use weir_coordinator::sensor::page::device;

use super::Target;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "node-sensor",
    run,
    seeds,
    words: &[
        b"weir_node_device_present{",
        b"weir_node_device_read_bytes_total{",
        b"weir_node_device_written_bytes_total{",
        b"path=\"/srv/a\",",
        b"device=\"sda\"",
        b"} 1",
        b"} 0",
        b"\\\"",
        b"\\n",
        b"18446744073709551616",
        b"# ",
        b"# EOF\n",
        b"\xc3\xa9",
    ],
    must_reach: &["the only device", "a chosen device", "refused"],
};

const PAGE: &str = "# HELP weir_node_device_present 1: the block device is there.\n\
    # TYPE weir_node_device_present gauge\nweir_node_device_present{path=\"/srv/a\",device=\"sda\"} 1\n\
    weir_node_device_read_bytes_total{path=\"/srv/a\",device=\"sda\"} 512\n\
    weir_node_device_written_bytes_total{path=\"/srv/a\",device=\"sda\"} 1024\n# EOF\n";

const GONE: &str = "weir_node_device_present{device=\"sdb\"} 0\n# EOF\n";

fn seeds() -> Vec<Script> {
    [PAGE, GONE, &format!("{GONE}{PAGE}")].into_iter().map(Script::of_lines).collect()
}

fn run(script: &Script, seen: &mut Seen) {
    seen.message();
    let joined = script.joined();
    let text = String::from_utf8_lossy(&joined);
    for (choice, found) in [(None, "the only device"), (Some("/srv/a"), "a chosen device")] {
        match device(&text, choice) {
            Ok(device) => {
                assert!(text.contains(&device.bytes.read.to_string()), "{device:?} is not on the page");
                seen.reach(found);
            }
            Err(unfit) => {
                assert!(!unfit.to_string().is_empty());
                seen.reach("refused");
            }
        }
    }
}
