//! A whole agent: what it sees is a tree of files but for the connections, and what it changes is the kernel.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command as Program;

use rustix::event::{Timespec, poll};
use tempfile::TempDir;
use weir_agent::agent::Agent;
use weir_agent::sensors::Roots;
use weir_clock::Clock;
use weir_model::Span;
use weir_status::ThrottleStatus;
use weir_throttle::{Connection, Settings};

use super::in_guest;
use super::scene::{LINK, PROGRAM, Scene, TARGET_V4, connection};

const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The most turns in which anything happens that does happen.
const PATIENCE: usize = 300;
const TARGET: &str = "kernel/config/target/iscsi/iqn.2026-01.example:a";

/// A host with a LIO target on a slow disk, and one initiator that is to be delayed.
struct Host {
    sys: TempDir,
    agent: Agent,
    clock: Clock,
    /// How many reads the disk has finished.
    reads: u64,
}

impl Host {
    fn start(scene: &Scene, at: Connection) -> Self {
        let sys = TempDir::new().expect("files can be written");
        let write = |path: &str, text: &str| {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("files can be written");
            fs::write(path, text).expect("files can be written");
        };
        let group = format!("{TARGET}/tpgt_1");
        write(&format!("{group}/enable"), "1\n");
        write(&format!("{group}/np/{}/iser", at.local), "0\n");
        write(&format!("{TARGET}/fabric_statistics/iscsi_instance/sessions"), "1\n");
        let session = "InitiatorName: iqn.i\n--[iSCSI Connections]--\n   Address ADDRESS TCP  StatSN: 0x1\n";
        write(&format!("{group}/acls/iqn.i/info"), &session.replace("ADDRESS", &at.peer.ip().to_string()));
        write(
            "kernel/config/target/core/iblock_0/ram/info",
            "        Major: 252 Minor: 0  CLAIMED: IBLOCK\n",
        );
        write("devices/block/ram/dev", "252:0\n");
        write("devices/block/ram/inflight", "0 0\n");
        write("devices/block/ram/stat", "0 0 0 0 0 0 0 0 0 0 0\n");
        let link = |path: &str, to: &str| {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("files can be written");
            symlink(to, path).expect("files can be written");
        };
        link(&format!("{group}/lun/lun_0/x"), "../../../../../../target/core/iblock_0/ram");
        link("dev/block/252:0", "../../devices/block/ram");
        let mut settings = Settings::new(Span::from_millis(15));
        settings.forced = [at.peer.ip().to_string().parse().expect("an address")].into();
        let roots = Roots { sys: sys.path().to_owned(), run: sys.path().join("run"), ..Roots::default() };
        let clock = Clock::new();
        let agent = scene.in_target(|| Agent::start(clock.now(), settings, roots, Some(guard)));
        Self { sys, agent: agent.expect("it can work here"), clock, reads: 0 }
    }

    /// Takes turns, in which reads wait for 50 ms each, until the status is so.
    fn turns_until(&mut self, what: &str, is_so: impl Fn(&ThrottleStatus) -> bool) -> ThrottleStatus {
        for _ in 0..PATIENCE {
            self.reads += 10;
            let stat = format!("{0} 0 0 {1} 0 0 0 0 0 0 0\n", self.reads, self.reads * 50);
            fs::write(self.sys.path().join("devices/block/ram/stat"), stat).expect("files can be written");
            self.agent.turn(self.clock.now()).expect("it is guarded");
            let status = self.agent.status(self.clock.now());
            if is_so(&status) {
                return status;
            }
            poll(&mut [], Some(&TURN)).expect("it waits for its time only");
        }
        panic!("waited in vain until {what}: {:?}", self.agent.status(self.clock.now()));
    }
}

fn guard() -> std::io::Result<Program> {
    let mut program = Program::new(PROGRAM);
    program.arg("guard");
    Ok(program)
}

/// The connections in the agent's maps.
fn members(scene: &Scene) -> usize {
    scene.shell("nft list map inet weir_throttle members4").matches("7e17:").count()
}

#[test]
fn while_somebody_has_taken_the_root_queue_away_no_delay_is_claimed_and_nobody_is_in_the_map() {
    let name = "while_somebody_has_taken_the_root_queue_away_no_delay_is_claimed_and_nobody_is_in_the_map";
    in_guest(name, || {
        let scene = Scene::new();
        scene.shell("ip link add other0 type ifb; ip link set other0 up");
        let before = scene.state();
        let (accepted, _stream) = scene.pair(TARGET_V4);
        let mut host = Host::start(&scene, connection(&accepted));
        let at_ceiling = |status: &ThrottleStatus| {
            let found = status.resources.first();
            found.is_some_and(|found| found.at_ceiling && found.delay_us == found.ceiling_us)
        };
        host.turns_until("it is delayed", at_ceiling);
        assert_eq!(members(&scene), 1);

        // Its class has the number of the leaf.
        scene.shell(&format!(
            "tc qdisc del dev {LINK} root; tc qdisc add dev {LINK} root handle 7e17: htb default 1
             tc class add dev {LINK} parent 7e17: classid 7e17:1 htb rate 1gbit"
        ));
        let status = host.turns_until("no delay is claimed", |status| {
            let found = status.resources.first();
            found.is_some_and(|found| found.delay_us == 0 && !found.at_ceiling)
        });
        assert_eq!(status.resources[0].initiators[0].connections, 0, "{status:?}");
        let [lacking] = &status.interfaces_out_of_reach[..] else { panic!("{status:?}") };
        assert!(lacking.interface == LINK && lacking.why.contains("htb 7e17:"), "{lacking:?}");
        assert_eq!(members(&scene), 0);

        scene.shell(&format!("tc qdisc del dev {LINK} root"));
        let status = host.turns_until("it is delayed again", at_ceiling);
        assert_eq!((status.interfaces_out_of_reach.len(), members(&scene)), (0, 1));
        host.agent.stop().expect("all is removed");
        assert_eq!(scene.state(), before);
    });
}
