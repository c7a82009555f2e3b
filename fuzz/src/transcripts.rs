//! Messages of real clients and servers, put together by hand from their transcripts. They are the seeds of
//! the NBD targets, and of the mutated messages that go over real sockets.
//!
//! The numbers are copied from the specification (`doc/proto.md` of the NetworkBlockDevice/nbd project). They
//! do not use weir's names, so that a wrong number behind such a name would be noticed.

use crate::script::Script;

/// The number of bytes in 32 bits, and the bytes.
fn counted(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes(), bytes].concat()
}

/// An option of the handshake.
pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &number.to_be_bytes()[..], &counted(data)].concat()
}

/// The client's flags: fixed newstyle, no zeroes.
pub fn client_flags() -> Vec<u8> {
    3_u32.to_be_bytes().to_vec()
}

/// The data of GO and INFO: the export, and the facts that are wanted.
pub fn info_data(export: &str, wanted: &[u16]) -> Vec<u8> {
    let count = u16::try_from(wanted.len()).unwrap_or(u16::MAX).to_be_bytes();
    let wanted: Vec<u8> = wanted.iter().flat_map(|fact| fact.to_be_bytes()).collect();
    [&counted(export.as_bytes())[..], &count, &wanted].concat()
}

/// The data of the options about metadata contexts.
pub fn context_data(export: &str, queries: &[&str]) -> Vec<u8> {
    let count = u32::try_from(queries.len()).unwrap_or(u32::MAX).to_be_bytes();
    let queries: Vec<u8> = queries.iter().flat_map(|query| counted(query.as_bytes())).collect();
    [&counted(export.as_bytes())[..], &count, &queries].concat()
}

/// A request, without payload.
pub fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    [
        &0x2560_9513_u32.to_be_bytes()[..],
        &flags.to_be_bytes(),
        &command.to_be_bytes(),
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
    ]
    .concat()
}

/// A write and its payload.
pub fn write(cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    [&request(0, 1, cookie, offset, length)[..], data].concat()
}

/// Requests as a client with work makes them: each command, some with flags.
fn work() -> Vec<Vec<u8>> {
    vec![
        request(0, 0, 1, 0, 4096),
        write(2, 4096, &[0xa5; 512]),
        request(1, 6, 3, 8192, 4096),
        request(0, 3, 4, 0, 0),
        request(4, 0, 5, 4096, 65_536),
        request(0, 4, 6, 0, 4096),
        request(0, 5, 7, 0, 4096),
        request(8, 7, 8, 0, 65_536),
        request(0, 7, 9, 0, 1 << 20),
        request(18, 6, 10, 0, 4096),
        write(11, 0, &[0; 64]),
    ]
}

/// The bytes that clients send, from the first to the last: qemu, libnbd, `nbd-client`, `nbdinfo --list`, a
/// client whose export does not exist, and one that is out of step.
pub fn of_clients(export: &str) -> Vec<Script> {
    let goodbye = || vec![request(0, 2, 99, 0, 0)];
    let qemu = vec![
        client_flags(),
        option(8, &[]),
        option(10, &context_data(export, &["base:allocation"])),
        option(7, &info_data(export, &[3])),
    ];
    let libnbd = vec![
        client_flags(),
        option(8, &[]),
        option(9, &context_data(export, &[])),
        option(10, &context_data(export, &["base:allocation", "qemu:dirty-bitmap:b"])),
        option(6, &info_data(export, &[1, 2, 3])),
        option(7, &info_data(export, &[1, 2, 3])),
    ];
    let nbd_client = vec![1_u32.to_be_bytes().to_vec(), option(1, export.as_bytes())];
    let no_zeroes = vec![client_flags(), option(1, export.as_bytes())];
    let list = vec![
        client_flags(),
        option(5, &[]),
        option(8, &[]),
        option(3, &[]),
        option(6, &info_data(export, &[1, 2])),
        option(2, &[]),
    ];
    let lost = vec![client_flags(), option(7, &info_data("none", &[3])), option(3, &[]), option(2, &[])];
    let simple = vec![client_flags(), option(7, &info_data(export, &[3]))];
    let out_of_step = [simple.clone(), vec![request(0, 0, 1, 0, 512), vec![0; 40]]].concat();
    let working = |hello: Vec<Vec<u8>>| Script::new([hello, work(), goodbye()].concat());
    vec![
        working(qemu),
        working(libnbd),
        working(nbd_client),
        working(no_zeroes),
        working(simple),
        Script::new(list),
        Script::new(lost),
        Script::new(out_of_step),
    ]
}

/// The greeting of a server: fixed newstyle, no zeroes.
pub fn greeting() -> Vec<u8> {
    [&b"NBDMAGICIHAVEOPT"[..], &3_u16.to_be_bytes()].concat()
}

/// A reply to an option.
pub fn option_reply(number: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let magic = 0x0003_e889_0455_65a9_u64.to_be_bytes();
    [&magic[..], &number.to_be_bytes(), &kind.to_be_bytes(), &counted(data)].concat()
}

fn told(size: u64, flags: u16) -> Vec<u8> {
    let export = [&0_u16.to_be_bytes()[..], &size.to_be_bytes(), &flags.to_be_bytes()].concat();
    let sizes = [1_u32, 4096, 1 << 25].map(u32::to_be_bytes).concat();
    let blocks = [&3_u16.to_be_bytes()[..], &sizes].concat();
    [option_reply(7, 3, &export), option_reply(7, 3, &blocks), option_reply(7, 1, &[])].concat()
}

/// A simple reply, and the data of a read that succeeded.
pub fn simple_reply(error: u32, cookie: u64, data: &[u8]) -> Vec<u8> {
    [&0x6744_6698_u32.to_be_bytes()[..], &error.to_be_bytes(), &cookie.to_be_bytes(), data].concat()
}

/// A chunk of a structured reply.
pub fn chunk(flags: u16, kind: u16, cookie: u64, payload: &[u8]) -> Vec<u8> {
    let magic = 0x668e_33ef_u32.to_be_bytes();
    [&magic[..], &flags.to_be_bytes(), &kind.to_be_bytes(), &cookie.to_be_bytes(), &counted(payload)].concat()
}

/// The bytes that servers send to a client with the requests of [`awaited`]. There is a server with
/// structured replies, one without, one of the old kind, and one without GO. The others do not have the
/// export, refuse it, fall silent, or are out of step.
pub fn of_servers() -> Vec<Script> {
    let at = |offset: u64, rest: &[u8]| [&offset.to_be_bytes()[..], rest].concat();
    let failed = |error: u32| [&error.to_be_bytes()[..], &2_u16.to_be_bytes(), b"no"].concat();
    let structured = vec![
        greeting(),
        option_reply(8, 1, &[]),
        told(1 << 30, 0x0d6d),
        simple_reply(0, 2, &[]),
        chunk(0, 1, 1, &at(0, &[7; 2048])),
        chunk(0, 2, 1, &at(2048, &2048_u32.to_be_bytes())),
        chunk(1, 0, 1, &[]),
        chunk(1, 1, 3, &at(8192, &[1; 512])),
        chunk(1, 0x8001, 4, &failed(5)),
        chunk(1, 0x8002, 5, &[failed(22), at(4096, &[])].concat()),
        simple_reply(0, 6, &[]),
    ];
    let simple = vec![
        greeting(),
        option_reply(8, 0x8000_0001, b"what?"),
        told(1 << 20, 0x016d),
        simple_reply(0, 1, &[9; 4096]),
        simple_reply(5, 3, &[]),
        simple_reply(0, 2, &[]),
        simple_reply(28, 6, &[]),
    ];
    let old = vec![
        [&b"NBDMAGICIHAVEOPT"[..], &0_u16.to_be_bytes()].concat(),
        [&(1_u64 << 20).to_be_bytes()[..], &5_u16.to_be_bytes(), &[0; 124]].concat(),
        simple_reply(0, 2, &[]),
    ];
    let without_go = vec![
        greeting(),
        option_reply(8, 1, &[]),
        option_reply(7, 0x8000_0001, &[]),
        [&(1_u64 << 20).to_be_bytes()[..], &5_u16.to_be_bytes()].concat(),
        chunk(1, 1, 3, &at(8192, &[1; 512])),
    ];
    let none = vec![
        greeting(),
        option_reply(8, 1, &[]),
        option_reply(7, 0x8000_0006, b"no such export"),
        option_reply(3, 2, &counted(b"db")),
        option_reply(3, 2, &[counted(b"backup"), b"the old one".to_vec()].concat()),
        option_reply(3, 1, &[]),
    ];
    let refused = vec![greeting(), option_reply(8, 1, &[]), option_reply(7, 0x8000_0002, b"not you")];
    let silent = vec![greeting()];
    let out_of_step = [&structured[..5], &[vec![0; 20]]].concat();
    let all = [structured, simple, old, without_go, none, refused, silent, out_of_step];
    all.into_iter().map(Script::new).collect()
}

/// The requests that the client of [`of_servers`] has sent: cookie, offset, and bytes of data in a reply that
/// succeeds.
pub fn awaited() -> [(u64, u64, u32); 6] {
    [(1, 0, 4096), (2, 0, 0), (3, 8192, 512), (4, 0, 1 << 20), (5, 4096, 4096), (6, 0, 0)]
}
