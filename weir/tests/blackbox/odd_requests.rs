//! Requests that few clients send, made by libnbd with its own checks off; and unusual handshakes.

use crate::harness::{Flags, RawClient, Scene, Server, bytes, command, python};

const SIZE: u32 = 40 * 1024 * 1024 + 77;

/// A file and a memory volume of 40 MiB and 77 bytes.
fn serve(scene: &Scene) -> Server {
    let backend = scene.backend("file.img");
    scene.serve(&format!(
        "[pool.p]
        [volume.file]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"{SIZE}B\"
        [volume.memory]\npool = \"p\"\nbackend = \"memory\"\nsize = \"{SIZE}B\"\n"
    ))
}

/// Runs the script on each volume of a server of its own. `SIZE` is the size of the export.
fn on_both(script: &str) {
    let scene = Scene::new();
    let server = serve(&scene);
    for uri in [server.uri("file"), server.tcp_uri("memory")] {
        python(&uri, &format!("SIZE = {SIZE}\n{script}"));
    }
    server.stop();
}

#[test]
fn reads_and_writes_of_any_bytes_are_exact() {
    on_both(
        "
h = connect()
model = bytearray(SIZE)
odd = [(0, 1), (1, 1), (511, 2), (4095, 1), (4095, 2), (4096, 4096), (4097, 4095), (8191, 3), (12288, 8192),
       (65535, 65538), (100000, 4096), (1 << 20, 1), (3000001, 99999), (SIZE - 1, 1), (SIZE - 78, 78), (SIZE - 4097, 4097)]
for (turn, (offset, length)) in enumerate(odd * 2):
    data = bytes((turn * 7 + i) % 251 for i in range(length))
    h.pwrite(data, offset)
    model[offset:offset + length] = data
for (offset, length) in odd + [(0, 200000), (SIZE - 10000, 10000), (4094, 5)]:
    assert h.pread(length, offset) == model[offset:offset + length], (offset, length)
assert h.pread(32 << 20, 0) == model[:32 << 20]
",
    );
}

#[test]
fn requests_of_no_length_or_out_of_bounds_are_refused_with_the_error_of_the_specification() {
    on_both(
        "
for structured in (True, False):
    h = connect(structured=structured)
    h.pwrite(b'x' * 512, 0)
    one = bytearray(1)
    fails(errno.EINVAL, lambda: h.pread(0, 0))
    fails(errno.EINVAL, lambda: h.pwrite(b'', 0))
    fails(errno.EINVAL, lambda: h.pread(1, SIZE))
    fails(errno.EINVAL, lambda: h.pread(2, SIZE - 1))
    fails(errno.EINVAL, lambda: h.pread(4096, (1 << 63) - 1))
    fails(errno.EINVAL, lambda: h.pread(4096, (1 << 64) - 4096))
    fails(errno.ENOSPC, lambda: h.pwrite(b'ab', SIZE - 1))
    fails(errno.ENOSPC, lambda: h.pwrite(b'a' * 100000, SIZE))
    fails(errno.ENOSPC, lambda: h.zero(4096, SIZE - 1))
    fails(errno.EINVAL, lambda: h.trim(4096, SIZE - 1))
    fails(errno.EINVAL, lambda: h.trim(0xffffffff, 1))
    fails(errno.EINVAL, lambda: h.cache(4096, SIZE))
    fails(errno.EINVAL, lambda: h.trim(0, 0))
    fails(errno.EINVAL, lambda: h.block_status(1, 0, lambda *a: 0) if not structured else h.block_status(1, SIZE, lambda *a: 0))
    assert h.pread(512, 0) == b'x' * 512, 'the stream is in step'
    assert h.pread(1, SIZE - 1) == b'\\0', 'nothing of the refused writes was done'
",
    );
}

#[test]
fn unknown_flags_and_flags_of_other_commands_are_refused() {
    on_both(
        "
h = connect()
for flags in (0x8000, 0x0020, nbd.CMD_FLAG_NO_HOLE, nbd.CMD_FLAG_REQ_ONE):
    fails(errno.EINVAL, lambda: h.pread(512, 0, flags))
for flags in (0x8000, nbd.CMD_FLAG_NO_HOLE, nbd.CMD_FLAG_DF, nbd.CMD_FLAG_FAST_ZERO):
    fails(errno.EINVAL, lambda: h.pwrite(b'abc', 0, flags))
fails(errno.EINVAL, lambda: h.trim(512, 0, nbd.CMD_FLAG_NO_HOLE))
fails(errno.EINVAL, lambda: h.flush(0x4000))
assert h.pread(3, 0) == b'\\0\\0\\0', 'nothing of the refused writes was done'
simple = connect(structured=False)
fails(errno.EINVAL, lambda: simple.pread(512, 0, nbd.CMD_FLAG_DF))
assert simple.pread(3, 0) == b'\\0\\0\\0'
",
    );
}

#[test]
fn requests_beyond_the_largest_are_answered_and_leave_the_stream_in_step() {
    on_both(
        "
MIB = 1 << 20
for structured in (True, False):
    h = connect(structured=structured)
    h.pwrite(b'before', 0)
    fails(errno.EINVAL, lambda: h.pwrite(b'z' * (33 * MIB), 0))
    assert h.pread(6, 0) == b'before', 'in step, and not written'
    fails(errno.EOVERFLOW if structured else errno.EINVAL, lambda: h.pread(33 * MIB, 0))
    assert h.pread(6, 0) == b'before'
    h.pwrite(b'y' * (32 * MIB), 1000)
    assert h.pread(32 * MIB, 1000) == b'y' * (32 * MIB), 'the largest itself is accepted'
    h.zero(33 * MIB, 0)
    assert h.pread(6, 0) == bytes(6), 'what has no payload may be longer'
    h.trim(SIZE, 0)
    h.cache(SIZE, 0)
",
    );
}

#[test]
fn fua_flush_trim_zero_and_cache_do_what_they_say() {
    on_both(
        "
KIB = 1024
h = connect()
h.pwrite(b'a' * (256 * KIB), 0, nbd.CMD_FLAG_FUA)
h.flush()
h.cache(256 * KIB, 0)
h.zero(64 * KIB, 0)
h.zero(64 * KIB, 64 * KIB, nbd.CMD_FLAG_NO_HOLE)
h.zero(64 * KIB, 128 * KIB, nbd.CMD_FLAG_FAST_ZERO)
h.zero(1000, 200001, nbd.CMD_FLAG_FUA | nbd.CMD_FLAG_NO_HOLE)
h.zero(1, 199999)
h.trim(32 * KIB, 224 * KIB, nbd.CMD_FLAG_FUA)
h.flush()
expected = bytearray(b'a' * (256 * KIB))
expected[:192 * KIB] = bytes(192 * KIB)
expected[200001:201001] = bytes(1000)
expected[199999] = 0
seen = h.pread(256 * KIB, 0)
assert seen[:224 * KIB] == expected[:224 * KIB]
# A trim may leave the bytes or make them zeroes.
assert set(seen[224 * KIB:]) <= {0, ord('a')}
",
    );
}

#[test]
fn block_status_covers_the_range_and_tells_holes_from_data() {
    on_both(
        "
def status(offset, length, flags=0):
    found = []
    def take(context, at, entries, error):
        assert context == nbd.CONTEXT_BASE_ALLOCATION and at == offset
        found.extend(zip(entries[::2], entries[1::2]))
        return 0
    h.block_status(length, offset, take, flags)
    return found
MIB = 1 << 20
h = connect()
h.pwrite(b'd' * MIB, MIB)
h.zero(MIB, 2 * MIB, nbd.CMD_FLAG_NO_HOLE)
h.pwrite(b'd' * MIB, 5 * MIB)
h.flush()
hole = nbd.STATE_HOLE | nbd.STATE_ZERO
whole = status(0, 8 * MIB)
assert whole[0] == (MIB, hole), whole
assert sum(length for (length, _) in whole) == 8 * MIB, whole
where = 0
for (length, state) in whole:
    data = h.pread(length, where)
    if state & nbd.STATE_ZERO:
        assert data == bytes(length), (where, length)
    if where < 6 * MIB and data.strip(b'd') == b'':
        assert state == 0, (where, length, state)
    where += length
assert status(0, 8 * MIB, nbd.CMD_FLAG_REQ_ONE) == [(MIB, hole)]
assert status(0, 4096, nbd.CMD_FLAG_REQ_ONE) == [(4096, hole)], 'no further than asked for'
assert status(MIB + 1, 3, nbd.CMD_FLAG_REQ_ONE) == [(3, 0)]
assert status(SIZE - 1, 1) == [(1, hole)]
fails(errno.EINVAL, lambda: status(0, 0))
fails(errno.EINVAL, lambda: status(SIZE, 1))
h2 = connect(allocation=False)
fails(errno.EINVAL, lambda: h2.block_status(4096, 0, lambda *a: 0))
assert h2.pread(1, 0) == b'\\0'
",
    );
}

#[test]
fn structured_reads_come_with_holes_and_in_one_piece_if_asked() {
    on_both(
        "
def pieces(length, offset, flags=0):
    found = []
    def take(part, at, kind, error):
        found.append((at, len(part), kind))
        return 0
    data = h.pread_structured(length, offset, take, flags)
    assert sum(length for (_, length, _) in found) == length, found
    return data, found
KIB = 1024
h = connect()
h.pwrite(b'd' * (128 * KIB), 128 * KIB)
expected = bytes(128 * KIB) + b'd' * (128 * KIB) + bytes(128 * KIB)
data, found = pieces(384 * KIB, 0)
assert data == expected
kinds = [kind for (_, _, kind) in sorted(found)]
assert kinds == [nbd.READ_HOLE, nbd.READ_DATA, nbd.READ_HOLE], found
data, found = pieces(384 * KIB, 0, nbd.CMD_FLAG_DF)
assert data == expected and found == [(0, 384 * KIB, nbd.READ_DATA)], found
data, found = pieces(100, 128 * KIB - 50)
assert data == bytes(50) + b'd' * 50
assert connect(structured=False).pread(384 * KIB, 0) == expected
",
    );
}

#[test]
fn connections_see_each_others_writes() {
    on_both(
        "
one, other, simple = connect(), connect(), connect(structured=False)
assert one.can_multi_conn() and simple.can_multi_conn()
for turn in range(1, 20):
    at = turn * 5001
    one.pwrite(bytes([turn]) * 10000, at)
    one.flush()
    assert other.pread(10000, at) == bytes([turn]) * 10000
    other.zero(100, at)
    other.flush()
    assert simple.pread(10000, at) == bytes(100) + bytes([turn]) * 9900
    simple.pwrite(b'!', at + 9999, nbd.CMD_FLAG_FUA)
    assert one.pread(1, at + 9999) == b'!'
",
    );
}

#[test]
fn many_requests_in_flight_are_each_answered_with_their_own_data() {
    on_both(
        "
h = connect()
def drain():
    while h.aio_in_flight():
        h.poll(-1)
buffers = []
def done(error):
    assert error.value == 0, error.value
    return 1
for i in range(500):
    data = nbd.Buffer.from_bytearray(bytearray(i.to_bytes(4, 'little') * 1024))
    buffers.append(data)
    h.aio_pwrite(data, i * 4099, completion=done)
drain()
reads = [nbd.Buffer(4096) for _ in range(500)]
for (i, buffer) in enumerate(reads):
    h.aio_pread(buffer, i * 4099, completion=done)
drain()
for (i, buffer) in enumerate(reads):
    assert buffer.to_bytearray() == i.to_bytes(4, 'little') * 1024, i
",
    );
}

#[test]
fn a_handshake_may_probe_list_and_go_wrong_before_it_goes_right() {
    on_both(
        "
h = nbd.NBD()
h.set_opt_mode(True)
h.set_request_structured_replies(True)
h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.connect_uri(URI)
right = h.get_export_name()
names = []
h.opt_list(lambda name, description: names.append(name) and 0 or 0)
assert sorted(names) == ['file', 'memory'], names
h.set_export_name('nosuch')
fails(errno.ENOENT, h.opt_info)
fails(errno.ENOENT, h.opt_go)
h.set_export_name('x' * 4096)
fails(errno.ENOENT, h.opt_go)
h.set_export_name(right)
contexts = []
h.opt_list_meta_context(lambda name: contexts.append(name) and 0 or 0)
assert contexts == ['base:allocation'], contexts
h.opt_info()
assert h.get_size() == SIZE
h.opt_go()
assert h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.pwrite(b'hello', 0)
assert h.pread(5, 0) == b'hello'
h.shutdown()
leaver = nbd.NBD()
leaver.set_opt_mode(True)
leaver.connect_uri(URI)
leaver.opt_abort()
",
    );
}

#[test]
fn tls_is_refused_where_it_is_required_and_done_without_where_it_is_not() {
    on_both(
        "
if not nbd.NBD().supports_tls():
    sys.exit('libnbd without TLS: install it: make setup')
allowed = nbd.NBD()
allowed.set_tls(nbd.TLS_ALLOW)
allowed.connect_uri(URI)
assert not allowed.get_tls_negotiated()
assert allowed.pread(1, 0) == b'\\0'
required = nbd.NBD()
required.set_tls(nbd.TLS_REQUIRE)
try:
    required.connect_uri(URI)
except nbd.Error as error:
    assert 'TLS' in str(error), error
else:
    sys.exit('a connection without TLS where it is required')
",
    );
}

#[test]
fn a_client_that_says_goodbye_gets_every_reply_that_it_is_owed_first() {
    let scene = Scene::new();
    let server = serve(&scene);
    let mut client = RawClient::connect(&server, "file");
    for n in 0..100 {
        client.send(command::WRITE, Flags::NONE, n * 4096, 4096, &bytes(n, 4096));
    }
    let mut goodbye = vec![(command::READ, 0, 1 << 20); 10];
    goodbye.push((command::DISCONNECT, 0, 0));
    goodbye.push((command::READ, 0, 4096));
    client.send_together(&goodbye);
    let replies = client.receive_to_end();
    assert!(replies.iter().all(|reply| reply.error == 0));
    assert_eq!((replies.len(), client.outstanding()), (110, 1), "what comes after a goodbye is not answered");
    server.stop();
}

#[test]
fn a_client_that_knows_no_more_than_export_name_is_served() {
    let scene = Scene::new();
    let server = serve(&scene);
    for mut client in [RawClient::connect(&server, "file"), RawClient::connect_tcp(&server, "memory")] {
        let data = bytes(3, 100_001);
        client.write(17, &data);
        client.flush();
        assert_eq!(client.read(17, 100_001), data);
        assert_eq!(client.ask(command::CACHE, Flags::NONE, 0, 4096, &[]).error, 0);
        assert_eq!(client.ask(command::TRIM, Flags::FUA, 0, 4096, &[]).error, 0);
        assert_eq!(client.ask(command::WRITE_ZEROES, Flags::NONE, 0, 17, &[]).error, 0);
        const EINVAL: u32 = 22;
        for unknown in [8, 0x7fff] {
            assert_eq!(client.ask(unknown, Flags::NONE, 0, 0, &[]).error, EINVAL);
        }
        assert_eq!(client.read(17, 100_001).len(), 100_001);
        client.disconnect();
    }
    assert!(RawClient::try_connect(&server, "nosuch").is_err(), "EXPORT_NAME has no other way to refuse");
    server.stop();
}
