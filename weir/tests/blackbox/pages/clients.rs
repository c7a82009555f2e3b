//! The commands of the page about clients, run exactly as they stand there. Only the addresses and the folder
//! are the test's own.
//!
//! The word behind `sh` says where a block of commands is run: `run` here; `qemu` here too, with a monitor
//! instead of a screen; `vm`, `vm-lost` and `vm-back` under a kernel of its own, in `vm`.

use crate::harness::{Block, Program, Scene, Server, blocks, bytes, skipped, status, wait_until};

const PAGE: &str = "clients.md";
/// The addresses of the page, and the folder of its volume.
const TCP: &str = "127.0.0.1:10809";
const SOCKET: &str = "/run/weir/nbd.sock";
const METRICS: &str = "127.0.0.1:9810";
const FOLDER: &str = "/srv/weir";

/// The path with Debian's own programs: `nbdsh` is a script, and other interpreters may lack its module.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// The blocks of commands with this mark.
pub(crate) fn commands(mark: &str) -> Vec<Block> {
    let found: Vec<_> =
        blocks(PAGE).into_iter().filter(|block| block.language == "sh" && block.mark == mark).collect();
    assert!(!found.is_empty(), "docs/{PAGE} has no commands with the mark {mark:?}");
    found
}

/// The configuration that the page assumes.
pub(crate) fn configuration() -> String {
    let found = blocks(PAGE).into_iter().find(|block| block.language == "toml");
    found.expect("the page has a configuration").text
}

/// A server of the page's configuration, and a folder with a disk image to copy.
struct Stage {
    scene: Scene,
    server: Server,
}

impl Stage {
    fn set() -> Self {
        let scene = Scene::new();
        scene.write("disk.img", bytes(1, 16 << 20));
        let text = configuration().replace(TCP, "127.0.0.1:0").replace(METRICS, "127.0.0.1:0");
        let text = text.replace(SOCKET, &scene.text("nbd.sock")).replace(FOLDER, &scene.text(""));
        let server = Server::start(&scene.write("weir.toml", text));
        Self { scene, server }
    }

    /// Text of the page, with this server's addresses.
    fn own(&self, text: &str) -> String {
        text.replace(TCP, &self.server.tcp).replace(SOCKET, &self.server.socket)
    }

    /// Runs commands as a shell runs pasted text, but ends at the first command that fails.
    fn run(&self, text: &str) -> String {
        let script = format!("set -euo pipefail\nPATH={PATH}\n{}", self.own(text));
        Program::new("bash").arg("-c").arg(script).directory(self.scene.path()).run()
    }
}

#[test]
fn every_block_of_commands_says_how_it_is_run() {
    for block in blocks(PAGE).iter().filter(|block| block.language == "sh") {
        assert!(
            ["run", "qemu", "vm", "vm-lost", "vm-back"].contains(&&*block.mark),
            "{}: {:?}",
            block.place,
            block.mark
        );
    }
}

#[test]
fn fio_libnbd_and_the_tools_of_qemu_work_as_the_page_says() {
    let stage = Stage::set();
    for block in commands("run") {
        let out = stage.run(&block.text);
        assert!(!out.contains("rror") && !out.contains("failed"), "{}: {out}", block.place);
    }
    stage.server.stop();
}

#[test]
fn qemu_has_the_disk_as_the_page_says() {
    let qemu = "qemu-system-x86_64";
    if !has(qemu) {
        return skipped(&format!("pages: {qemu}"), "no such program; scripts/setup test installs it");
    }
    let stage = Stage::set();
    for block in commands("qemu") {
        // qemu runs without a screen. Its monitor shows its disks, and its processor is not started.
        let command =
            format!("{} -display none -S -monitor stdio <<<$'info block\\nquit'", block.text.trim_end());
        let out = stage.run(&command);
        let socket = &stage.server.socket;
        assert!(out.contains("nbd") && out.contains(socket), "{}: {out}", block.place);
        wait_until("qemu has gone", || status(&stage.server)["connections"] == 0);
    }
    stage.server.stop();
}

#[test]
fn qemu_waits_for_a_gateway_that_is_away_by_the_options_of_the_page() {
    let mut stage = Stage::set();
    let config = stage.scene.file("weir.toml");
    let qemu = stage.own(&commands("qemu")[0].text);
    let options =
        qemu.split_whitespace().skip_while(|word| *word != "-blockdev").nth(1).expect("a block device");
    assert!(options.contains("reconnect-delay="), "{options}");
    let mut qemu_io = Program::new("qemu-io").arg("--image-opts").arg(options).typed_to().start();
    for (pattern, is_killed) in [(1, false), (2, true)] {
        qemu_io.type_line(&format!("write -P {pattern} {pattern}M 64k"));
        qemu_io.wait_for(&format!("wrote 65536/65536 bytes at offset {}", pattern << 20));
        if is_killed {
            stage.server.kill()
        } else {
            stage.server.stop()
        }
        qemu_io.type_line(&format!("read -P {pattern} {pattern}M 64k"));
        stage.server = Server::start(&config);
        qemu_io.wait_for(&format!("read 65536/65536 bytes at offset {}", pattern << 20));
    }
    qemu_io.type_line("quit");
    let out = qemu_io.succeed();
    assert!(!out.contains("failed"), "{out}");
    stage.server.stop();
}

#[test]
fn the_disk_of_libvirt_is_one_that_its_schema_accepts() {
    let scene = Scene::new();
    let disks: Vec<_> = blocks(PAGE).into_iter().filter(|block| block.language == "xml").collect();
    assert!(!disks.is_empty(), "docs/{PAGE} has a disk for libvirt");
    for disk in disks {
        let domain = format!(
            "<domain type='kvm'><name>guest</name><memory unit='GiB'>1</memory><os><type>hvm</type></os>\n\
             <devices>\n{}</devices></domain>\n",
            disk.text
        );
        let file = scene.write("domain.xml", domain);
        Program::new("virt-xml-validate").arg(file.display()).arg("domain").run();
    }
}

/// Whether there is such a program.
fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
