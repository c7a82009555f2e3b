# Has the kernel's NBD client connect to a server, over generic netlink (linux/nbd-netlink.h):
#   connect|reconnect SOCKET EXPORT DEVICE CONNECTIONS
# Requests that are not answered are kept for some time if all connections break, and go out again after a reconnection.
import socket, struct, sys

what, path, export, device, connections = sys.argv[1:]
CONNECT, RECONFIGURE = 1, 3
INDEX, SIZE_BYTES, BLOCK_SIZE_BYTES, SERVER_FLAGS, SOCKETS, DEAD_CONN_TIMEOUT = 1, 2, 3, 5, 7, 8
REQUEST, ACK, NESTED = 1, 4, 0x8000
SECONDS = 120


def attribute(kind, data):
    length = 4 + len(data)
    return struct.pack("=HH", length, kind) + data + bytes(-length % 4)


def negotiate():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    assert connection.recv(18, socket.MSG_WAITALL)[:16] == b"NBDMAGICIHAVEOPT"
    connection.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, len(export)) + export.encode())
    size, flags = struct.unpack(">QH", connection.recv(10, socket.MSG_WAITALL))
    return connection, size, flags


def ask(family, command, attributes):
    payload = struct.pack("=BBH", command, 1, 0) + attributes
    netlink.send(struct.pack("=IHHII", 16 + len(payload), family, REQUEST | ACK, 1, 0) + payload)
    answer = netlink.recv(65536)
    kind, = struct.unpack_from("=H", answer, 4)
    error, = struct.unpack_from("=i", answer, 16) if kind == 2 else (0,)
    assert error == 0, f"the kernel refuses: error {-error}"
    return answer


netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
netlink.bind((0, 0))
answer = ask(0x10, 3, attribute(2, b"nbd\0"))  # which number has the family "nbd"
at, family = 20, None
while at < len(answer) and family is None:
    length, kind = struct.unpack_from("=HH", answer, at)
    if kind == 1:
        family, = struct.unpack_from("=H", answer, at + 4)
    at += length + -length % 4
netlink.recv(65536)  # the acknowledgement

negotiated = [negotiate() for _ in range(int(connections))]
_, size, flags = negotiated[0]
items = b"".join(
    attribute(1 | NESTED, attribute(1, struct.pack("=I", connection.fileno()))) for connection, _, _ in negotiated
)
attributes = attribute(INDEX, struct.pack("=I", int(device))) + attribute(SOCKETS | NESTED, items)
attributes += attribute(DEAD_CONN_TIMEOUT, struct.pack("=Q", SECONDS))
if what == "connect":
    attributes += attribute(SIZE_BYTES, struct.pack("=Q", size)) + attribute(BLOCK_SIZE_BYTES, struct.pack("=Q", 4096))
    attributes += attribute(SERVER_FLAGS, struct.pack("=Q", flags))
ask(family, CONNECT if what == "connect" else RECONFIGURE, attributes)
