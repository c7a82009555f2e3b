//! `weir throttle` as a user starts it, at a real LIO with initiators that write.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Program, Scene, get, wait_until};

use super::super::in_guest;
use super::super::initiator::Initiator;
use super::super::kernel_client::shell;

/// A host at a link of its own.
const HOST: &str = "ip netns add w; ip link add vethw type veth peer name eth0 netns w
ip addr add 10.9.8.1/24 dev vethw; ip link set vethw up
ip -n w addr add 10.9.8.2/24 dev eth0; ip -n w link set eth0 up";

/// A disk in memory.
const DISK: &str = "modprobe null_blk nr_devices=0; d=/sys/kernel/config/nullb/ram; mkdir $d; cd $d
echo 64 >size; echo 1 >memory_backed; echo 1 >power";

/// LIO, which lets in everybody.
const LIO: &str = "modprobe iscsi_target_mod; modprobe target_core_iblock
cd /sys/kernel/config/target; mkdir -p core/iblock_1/ram iscsi
echo udev_path=/dev/ram >core/iblock_1/ram/control; echo 1 >core/iblock_1/ram/enable
group=iscsi/iqn.2026-01.example:ram/tpgt_1; mkdir -p $group/lun/lun_0 $group/np/10.9.8.1:3263
ln -s $PWD/core/iblock_1/ram $group/lun/lun_0/x; echo 0 >$group/attrib/authentication
echo 1 >$group/attrib/generate_node_acls; echo 0 >$group/attrib/demo_mode_write_protect
echo 1 >$group/enable";

const TAKE_DOWN: &str = "cd /sys/kernel/config/target; group=iscsi/iqn.2026-01.example:ram/tpgt_1
echo 0 >$group/enable; rm $group/lun/lun_0/x; rmdir $group/lun/lun_0 $group/np/* $group
rmdir iscsi/iqn.2026-01.example:ram core/iblock_1/ram
echo 0 >/sys/kernel/config/nullb/ram/power; rmdir /sys/kernel/config/nullb/ram; ip netns del w";

const STATUS: &str = "http://127.0.0.1:9811/v1/status";
const TARGET: &str = "iqn.2026-01.example:ram";

/// Everything that `tc` and `nft` know.
fn queues_and_tables() -> String {
    shell("tc -j qdisc show; nft -j list ruleset")
}

/// How many initiators are members of the first resource, if that is the disk.
fn members() -> usize {
    let status: Value = serde_json::from_str(&get(STATUS)).expect("it is JSON");
    let disk = &status["resources"][0];
    let is_member = |initiator: &&Value| disk["name"] == "ram" && initiator["standing"] == "above_limit";
    disk["initiators"].as_array().into_iter().flatten().filter(is_member).count()
}

#[test]
fn an_agent_finds_a_real_target_with_its_writers_and_leaves_everything_as_it_was() {
    in_guest("an_agent_finds_a_real_target_with_its_writers_and_leaves_everything_as_it_was", || {
        shell(HOST);
        shell(DISK);
        shell(LIO);
        let before = queues_and_tables();
        let scene = Scene::new();
        let text = "[throttle]\nthreshold = \"12ms\"\nwrite_limit = \"1KiB/s\"\n";
        let file = scene.write("throttle.toml", text);
        let portal: SocketAddr = "10.9.8.1:3263".parse().expect("a test's own address");
        let ends = Arc::new(AtomicBool::new(false));
        let writers = [1, 2].map(|n| {
            let ends = Arc::clone(&ends);
            let mut writer = Initiator::log_in("w", portal, &format!("iqn.w:{n}"), TARGET);
            thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    writer.write(0, 16);
                }
                writer
            })
        });
        let mut agent = Program::weir().args("throttle").arg(file.display()).start();
        agent.wait_for("weir: guarding");
        wait_until("both are members", || members() == 2);
        let during = queues_and_tables();
        assert!(during.contains("\"htb\"") && during.contains("weir_throttle"), "{during}");

        let second = Program::weir().args("throttle --target-latency 12ms").outcome();
        assert_eq!(second.code, Some(64));
        assert!(second.log.contains("another agent delays packets"), "{}", second.log);
        let shown = Program::weir().args("throttle explain ram").run();
        assert!(shown.contains("iqn.w:1") && shown.contains("12.00 ms"), "{shown}");

        agent.signal(Signal::TERM);
        agent.succeed();
        assert_eq!(queues_and_tables(), before);
        ends.store(true, Ordering::Relaxed);
        drop(writers.map(|writer| writer.join().expect("each session works to its end")));
        shell(TAKE_DOWN);
    });
}
