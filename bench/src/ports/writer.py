"""Writes numbered blocks to a part of a volume and says how many are flushed, or reads them again.

Each host has a part of its own. After an error, or when the connection is gone, it connects again and goes on with the first block
that was not flushed: what it has said to be flushed must stay. `arguments` is set before.
"""

import sys
import time

import nbd

BLOCK = 16384
BLOCKS = 32768  # 512 MiB for each host
BETWEEN_FLUSHES = 16
PATIENCE_S = 0.1


def content(host, number, lap):
    return (b"%4d %12d %8d|" % (host, number, lap)).ljust(64, b".") * (BLOCK // 64)


def connect(uri):
    handle = nbd.NBD()
    handle.connect_uri(uri)
    return handle


def place(host, number):
    return (host * BLOCKS + number % BLOCKS) * BLOCK


def write(uri, host):
    flushed, handle = 0, None
    while True:
        try:
            if handle is None:
                handle = connect(uri)
            for number in range(flushed, flushed + BETWEEN_FLUSHES):
                handle.pwrite(content(host, number, number // BLOCKS), place(host, number))
            handle.flush()
            flushed += BETWEEN_FLUSHES
            print(flushed, flush=True)
        except nbd.Error:
            handle = None
            time.sleep(PATIENCE_S)


def verify(uri, host, flushed):
    handle = connect(uri)
    for number in range(max(0, flushed - BLOCKS + BETWEEN_FLUSHES), flushed):
        found = bytes(handle.pread(BLOCK, place(host, number)))
        if found != content(host, number, number // BLOCKS):
            sys.exit(f"block {number} is not what was written: found {found[:32]!r}")


if arguments[0] == "write":
    write(arguments[1], int(arguments[2]))
else:
    verify(arguments[1], int(arguments[2]), int(arguments[3]))
