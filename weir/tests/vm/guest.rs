//! The tests that run in the guest, on a kernel and on file systems of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::harness::{Flags, Program, RawClient, Scene, Server, block, command, status, wait_until};

use super::in_guest;
use super::kernel_client::{Disk, attempt, shell};
use super::rounds::rounds;

mod lab;
mod page;
mod targets;
mod throttle;

const EIO: u32 = 5;
const CONNECTIONS: u32 = 4;

/// The part of the kills under a file system, in percent of all. The other kills are in `crash`.
const PERCENT_OF_ROUNDS: u64 = 10;

/// A volume `v`, and another volume in its pool.
fn configuration(scene: &Scene, backend: &str) -> PathBuf {
    scene.configure(&format!(
        "[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\n\
         slo = [{{ up_to = \"10000iops\", read = \"50ms\", write = \"50ms\" }}]\n\
         [volume.beside]\npool = \"p\"\nbackend = \"memory\"\nsize = \"64MiB\"\n"
    ))
}

/// An empty image of 512 MiB, as a backend.
fn image(scene: &Scene) -> String {
    let file = File::create(scene.file("v.img"));
    file.and_then(|file| file.set_len(512 << 20)).expect("the directory of a test can be written");
    scene.backend("v.img")
}

/// fio in a directory. It verifies what it has written. Only the guest's own limit bounds its time.
fn fio(directory: &Path, more: &str) -> Child {
    Command::new("fio")
        .args("--name=job --size=2m --rw=randwrite --bs=4k --ioengine=psync --fsync=8".split(' '))
        .args("--verify=crc32c --do_verify=1 --verify_fatal=1 --verify_state_save=0".split(' '))
        .arg(format!("--directory={}", directory.display()))
        .args(more.split(' '))
        .stdout(Stdio::null())
        .spawn()
        .expect("fio is installed by `make setup`")
}

fn succeeds(mut child: Child) {
    let status = child.wait().expect("a child can be waited for");
    assert!(status.success(), "fio: {status}");
}

#[test]
fn ext4_and_xfs_over_several_connections_read_what_they_wrote_beside_a_hog() {
    in_guest("ext4_and_xfs_over_several_connections_read_what_they_wrote_beside_a_hog", || {
        let scene = Scene::new();
        let server = Server::start(&configuration(&scene, &image(&scene)));
        let hog = Program::weir()
            .arg("load")
            .arg(server.uri("beside"))
            .args("--reads 50 --connections 1 --depth 4 --duration 1h")
            .start();
        for (make, options) in [
            ("mkfs.ext4 -q -E nodiscard", "--direct=1 --numjobs=2"),
            ("mkfs.xfs -q -f -K", "--direct=0 --numjobs=1"),
        ] {
            let disk = Disk::connect(&server, 0, CONNECTIONS);
            shell(&format!("{make} {}", disk.path));
            let mounted = disk.mount(&scene);
            succeeds(fio(&mounted.directory, options));
            let checksum = || shell(&format!("cat {}/job* | cksum", mounted.directory.display()));
            let before = checksum();
            shell("sync; echo 3 >/proc/sys/vm/drop_caches");
            assert_eq!(checksum(), before, "{make}: what the storage has is what was in the cache");
            mounted.unmount();
            disk.disconnect();
        }
        drop(hog);
        server.stop();
    });
}

#[test]
fn the_kernel_reconnects_to_a_server_that_was_killed_and_its_file_system_goes_on() {
    in_guest("the_kernel_reconnects_to_a_server_that_was_killed_and_its_file_system_goes_on", || {
        let scene = Scene::new();
        let config = configuration(&scene, &image(&scene));
        let server = Server::start(&config);
        let disk = Disk::connect_patiently(&server, 1, CONNECTIONS);
        shell(&format!("mkfs.ext4 -q -E nodiscard {}", disk.path));
        let mounted = disk.mount(&scene);
        let mut load = fio(&mounted.directory, "--direct=1");
        let file = mounted.directory.join("job.0.0");
        let written = || std::fs::metadata(&file).is_ok_and(|file| file.len() > 0);
        let mut runs = || load.try_wait().is_ok_and(|ended| ended.is_none());
        wait_until("fio writes", || written() && runs());
        server.kill();
        assert!(runs(), "it was killed under writes");
        let server = Server::start(&config);
        disk.reconnect(&server, CONNECTIONS);
        succeeds(load); // the kernel waits 30 s before it repeats what the dead server had taken
        mounted.unmount();
        shell(&format!("fsck.ext4 -fn {}", disk.path));
        disk.disconnect();
        server.stop();
    });
}

#[test]
fn a_disk_that_loses_writes_is_told_to_every_client_and_stops_ext4() {
    in_guest("a_disk_that_loses_writes_is_told_to_every_client_and_stops_ext4", || {
        let scene = Scene::new();
        let small = scene.file("small");
        // The image is on a file system that is too small for it, and is used as a loop device. Only the part
        // that ext4 needs is allocated.
        let device = shell(&format!(
            "mkdir {0}; mount -t tmpfs -o size=96m small {0}; truncate -s 512M {0}/image; losetup -f --show {0}/image",
            small.display()
        ));
        let server = Server::start(&configuration(&scene, &format!("file:{}", device.trim())));
        let disk = Disk::connect(&server, 2, CONNECTIONS);
        shell(&format!(
            "mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -J size=8 {} 300m",
            disk.path
        ));
        let mounted = disk.mount(&scene);
        let path = mounted.directory.join("file");
        let in_place = |stamp| {
            let file = File::options().create(true).write(true).truncate(false).open(&path)?;
            file.write_all_at(&block(0, stamp), 0)?;
            file.sync_all()
        };
        in_place(1).expect("the disk is well");
        shell("sync");
        let mut others = [(); 2].map(|()| RawClient::connect(&server, "v"));
        attempt(&format!("dd if=/dev/zero of={}/rest bs=64k", small.display())); // until it is full

        // Unaligned writes go through the page cache, which takes them; the disk has no room for them.
        for (number, client) in (0..).zip(&mut others) {
            for piece in 0..64 {
                client.write((400 << 20) + (number * 64 + piece) * 65536 + 512, &[1; 512]);
            }
        }
        let flush = |client: &mut RawClient| client.ask(command::FLUSH, Flags::NONE, 0, 0, &[]).error;
        assert_ne!(flush(&mut others[0]), 0, "the disk has failed");
        assert_eq!(flush(&mut others[1]), EIO, "its writes are lost, too");
        let told = in_place(2);
        assert!(told.is_err(), "the file system must not take its writes for durable");
        let read_only = |error: &io::Error| error.raw_os_error() == Some(30);
        assert!(in_place(3).is_err(), "and has stopped: {}", in_place(3).as_ref().is_err_and(read_only));
        server.wait_for_log(0, "writes that were answered and not flushed may be lost");
        mounted.unmount();
        disk.disconnect();
        drop(server);
    });
}

#[test]
fn a_write_for_which_the_disk_under_an_image_has_no_room_fails_and_works_when_there_is_room() {
    const ENOSPC: u32 = 28;
    in_guest(
        "a_write_for_which_the_disk_under_an_image_has_no_room_fails_and_works_when_there_is_room",
        || {
            let scene = Scene::new();
            let small = scene.file("small");
            shell(&format!(
                "mkdir {0}; mount -t tmpfs -o size=8m small {0}; truncate -s 512M {0}/v.img",
                small.display()
            ));
            let server = Server::start(&configuration(&scene, &scene.backend("small/v.img")));
            let mut client = RawClient::connect(&server, "v");
            client.write(0, &block(0, 1));
            shell(&format!("dd if=/dev/zero of={}/rest bs=64k 2>/dev/null || true", small.display()));
            let data = [1; 1 << 16];
            let mut write = |offset| client.ask(command::WRITE, Flags::NONE, offset, 1 << 16, &data).error;
            assert_eq!(write(1 << 20), ENOSPC);
            server.wait_for_log(0, "No space left on device");
            shell(&format!("rm {}/rest", small.display()));
            assert_eq!(write(1 << 20), 0);
            assert_eq!(client.read(0, 4096), block(0, 1));
            client.flush();
            server.stop();
            // The kernel releases the files of an io_uring some time after its process has ended. Until then
            // a plain umount finds the file system busy.
            shell(&format!("umount --lazy {}", small.display()));
        },
    );
}

#[test]
fn clients_and_promises_do_not_notice_that_the_time_of_day_jumps() {
    in_guest("clients_and_promises_do_not_notice_that_the_time_of_day_jumps", || {
        let scene = Scene::new();
        let server = Server::start(&configuration(&scene, "memory\"\nsize = \"1MiB"));
        let mut client = RawClient::connect(&server, "v");
        let windows = || {
            let windows = &status(&server)["pools"][0]["volumes"][1]["windows"];
            ["met", "missed", "out_of_contract", "idle"]
                .map(|verdict| windows[verdict].as_u64().unwrap())
                .iter()
                .sum::<u64>()
        };
        wait_until("a window has closed", || windows() > 0);
        let before = windows();
        for jump in ["+ 400 days", "- 800 days", "+ 400 days"] {
            shell(&format!("date -s \"$(date) {jump}\""));
            client.write(0, &block(0, 1));
            assert_eq!(client.read(0, 4096), block(0, 1), "the connection is there");
            client.flush();
        }
        assert!(windows() < before + 3600, "windows are of the time that goes by");
        server.stop();
    });
}

/// The number of blocks of the file that is written in place.
const BLOCKS: u64 = 32;

/// A writer's knowledge: for each block, the last stamp that it wrote and the last one that was synchronised.
#[derive(Default)]
struct Known {
    sent: BTreeMap<u64, u64>,
    durable: BTreeMap<u64, u64>,
    /// Files that were made and synchronised, together with their directory.
    made: Vec<u64>,
}

#[test]
fn what_ext4_has_synchronised_survives_that_the_server_is_killed_under_writes() {
    in_guest("what_ext4_has_synchronised_survives_that_the_server_is_killed_under_writes", || {
        let scene = Scene::new();
        let config = configuration(&scene, &image(&scene));
        let mut server = Server::start(&config);
        let mut disk = Disk::connect(&server, 3, CONNECTIONS);
        shell(&format!("mkfs.ext4 -q -E nodiscard {}", disk.path));
        let mut known = Known::default();
        for round in 1..=rounds(PERCENT_OF_ROUNDS) {
            let mounted = disk.mount(&scene);
            check(&mounted.directory, &known);
            let (synchronised, so_far) = channel();
            thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    let synchronised = synchronised; // and so it is gone with the writer
                    write_until_it_fails(&mounted.directory, round, &mut known, &synchronised);
                });
                for _ in 0..10 + round % 7 {
                    so_far.recv().expect("the writer goes on while the server is there");
                }
                server.kill();
                disk.cut();
                writer.join().expect("the writer ends with an error of the file system");
            });
            mounted.unmount();
            disk.forget();
            server = Server::start(&config);
            disk = Disk::connect(&server, 3, CONNECTIONS);
        }
        let mounted = disk.mount(&scene);
        check(&mounted.directory, &known);
        mounted.unmount();
        shell(&format!("fsck.ext4 -fn {}", disk.path));
        disk.disconnect();
        server.stop();
    });
}

/// Writes blocks in place and makes files, each synchronised, until an operation fails.
fn write_until_it_fails(directory: &Path, round: u64, known: &mut Known, synchronised: &Sender<()>) {
    let mut write = |n: u64| -> io::Result<()> {
        let (number, stamp) = (n * 7 % BLOCKS, round << 32 | n);
        let file = File::options().create(true).write(true).truncate(false).open(directory.join("blocks"))?;
        known.sent.insert(number, stamp);
        file.write_all_at(&block(number, stamp), number * 4096)?;
        file.sync_data()?;
        known.durable.insert(number, stamp);
        let name = directory.join(format!("file-{stamp}"));
        let file = File::create(&name)?;
        file.write_all_at(&block(stamp, stamp), 0)?;
        file.sync_all()?;
        File::open(directory)?.sync_all()?;
        known.made.push(stamp);
        let _ = synchronised.send(()); // nobody counts any more once the server is killed
        Ok(())
    };
    let _ = (1..).try_for_each(&mut write);
}

/// Checks that everything that was synchronised is there, whole.
fn check(directory: &Path, known: &Known) {
    for stamp in &known.made {
        let data =
            std::fs::read(directory.join(format!("file-{stamp}"))).expect("a file that was synchronised");
        assert!(data == block(*stamp, *stamp), "file {stamp:x}");
    }
    for (number, durable) in &known.durable {
        let mut data = [0; 4096];
        let file = File::open(directory.join("blocks")).expect("it was synchronised");
        file.read_exact_at(&mut data, number * 4096).expect("the block was synchronised");
        let stamp = u64::from_le_bytes(data[8..16].try_into().expect("8 bytes"));
        let sent = known.sent[number];
        assert!(
            (*durable..=sent).contains(&stamp),
            "block {number}: {stamp:x} is not in {durable:x}..={sent:x}"
        );
        assert!(data[..] == block(*number, stamp)[..], "block {number} is torn");
    }
}
