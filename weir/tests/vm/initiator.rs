//! An iSCSI initiator that logs in and writes: the few messages of RFC 7143 that this takes.
//!
//! open-iscsi cannot be in a network namespace with Linux 6.1, and libiscsi's tools log out when they are
//! done. A test needs sessions that stay, from several hosts, each with a name of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::harness::PATIENCE;

/// The length of a message's header (section 11.2.1).
const HEADER: usize = 48;
/// A ping of the target, NOP-In (section 11.19).
const PING: u8 = 0x20;
/// The bytes of a write. They are sent with the command, in one message.
const WRITE: usize = 8 << 10;
const BLOCK: usize = 512;
/// The most messages of a login.
const ROUNDS: usize = 5;

/// An initiator with a session of one connection.
pub(super) struct Initiator {
    stream: TcpStream,
    command: u32,
    status: u32,
}

impl Initiator {
    /// Logs in to `target` as `name`, from the network namespace `host`.
    ///
    /// # Panics
    /// If the target refuses.
    pub(super) fn log_in(host: &str, portal: SocketAddr, name: &str, target: &str) -> Self {
        let space = format!("/run/netns/{host}");
        let connect = move || {
            let space = File::open(space).expect("the namespace is there");
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
            TcpStream::connect(portal).expect("the portal listens")
        };
        let stream = thread::spawn(connect).join().expect("it can connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
        let mut initiator = Self { stream, command: 1, status: 0 };
        // LIO proposes each key that it does not get.
        let mut keys = format!(
            "InitiatorName={name}\0TargetName={target}\0SessionType=Normal\0HeaderDigest=None\0DataDigest=None\0\
             ImmediateData=Yes\0InitialR2T=Yes\0MaxBurstLength=262144\0FirstBurstLength=65536\0\
             DefaultTime2Wait=2\0DefaultTime2Retain=0\0MaxOutstandingR2T=1\0MaxConnections=1\0\
             ErrorRecoveryLevel=0\0DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0"
        );
        for _ in 0..ROUNDS {
            let mut header = [0; HEADER];
            // At once; from the stage of parameters to the end of the login (section 11.12).
            (header[0], header[1]) = (0x43, 0x87);
            // A random ISID, which makes each login a session of its own.
            header[8] = 0x80;
            header[10..12].copy_from_slice(&initiator.own_port().to_be_bytes());
            initiator.send(header, keys.as_bytes());
            let (answer, _) = initiator.receive();
            assert_eq!((answer[0], answer[36], answer[37]), (0x23, 0, 0), "the target lets {name} in");
            if answer[1] & 0x83 == 0x83 {
                return initiator;
            }
            keys.clear();
        }
        panic!("{target} does not end the login of {name}");
    }

    /// The two ends of the connection: that of the portal, and the initiator's.
    pub(super) fn ends(&self) -> (SocketAddr, SocketAddr) {
        (
            self.stream.peer_addr().expect("it is connected"),
            self.stream.local_addr().expect("it is connected"),
        )
    }

    /// Writes `pieces` of 8 KiB to the LUN, from its beginning.
    pub(super) fn write(&mut self, lun: u8, pieces: u32) {
        for piece in 0..pieces {
            // A first command may only be told that the target has been started.
            let done = (0..5).any(|_| self.write_one(lun, piece));
            assert!(done, "the target takes a write");
        }
    }

    /// A command `WRITE (10)` with its data (section 11.3; SBC-3, section 5.26).
    fn write_one(&mut self, lun: u8, piece: u32) -> bool {
        let blocks = u16::try_from(WRITE / BLOCK).expect("a write is short");
        let mut header = [0; HEADER];
        // The last message of the command, which writes, in any order with others.
        (header[0], header[1]) = (0x01, 0xa1);
        header[9] = lun;
        header[20..24].copy_from_slice(&u32::try_from(WRITE).expect("a write is short").to_be_bytes());
        header[32] = 0x2a;
        header[34..38].copy_from_slice(&(piece * u32::from(blocks)).to_be_bytes());
        header[39..41].copy_from_slice(&blocks.to_be_bytes());
        self.send(header, &[0x5a; WRITE]);
        self.command += 1;
        let (answer, _) = self.receive();
        assert_eq!((answer[0], answer[2]), (0x21, 0), "the answer to a command");
        answer[3] == 0
    }

    fn own_port(&self) -> u16 {
        self.ends().1.port()
    }

    /// Sends a message of the command that is under way.
    fn send(&mut self, header: [u8; HEADER], data: &[u8]) {
        self.send_tagged(header, self.command.to_be_bytes(), data);
    }

    fn send_tagged(&mut self, mut header: [u8; HEADER], tag: [u8; 4], data: &[u8]) {
        let length = u32::try_from(data.len()).expect("a message is short").to_be_bytes();
        header[5..8].copy_from_slice(&length[1..]);
        header[16..20].copy_from_slice(&tag);
        header[24..28].copy_from_slice(&self.command.to_be_bytes());
        header[28..32].copy_from_slice(&self.status.to_be_bytes());
        let padding = vec![0; data.len().next_multiple_of(4) - data.len()];
        self.stream.write_all(&[&header, data, &padding].concat()).expect("the target takes messages");
    }

    /// The next message that answers a command. Pings of the target, which ends the sessions of initiators
    /// that do not answer them, are answered.
    fn receive(&mut self) -> ([u8; HEADER], Vec<u8>) {
        loop {
            let mut header = [0; HEADER];
            self.stream.read_exact(&mut header).expect("the target answers");
            let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
            let mut data = vec![0; length.next_multiple_of(4)];
            self.stream.read_exact(&mut data).expect("the target answers");
            if header[0] & 0x3f == PING {
                self.answer_ping(&header);
                continue;
            }
            let status = u32::from_be_bytes([header[24], header[25], header[26], header[27]]);
            self.status = status.wrapping_add(1);
            return (header, data);
        }
    }

    /// Answers a ping (section 11.18), unless the target wants no answer.
    fn answer_ping(&mut self, ping: &[u8; HEADER]) {
        const NO_TAG: [u8; 4] = [0xff; 4];
        if ping[20..24] == NO_TAG {
            return;
        }
        let mut answer = [0; HEADER];
        // At once, and the only message of its kind.
        (answer[0], answer[1]) = (0x40, 0x80);
        answer[8..16].copy_from_slice(&ping[8..16]);
        answer[20..24].copy_from_slice(&ping[20..24]);
        self.send_tagged(answer, NO_TAG, &[]);
    }
}
