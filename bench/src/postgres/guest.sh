#!/usr/bin/env bash
# Runs pgbench beside a hog in the guest of scripts/run-in-vm, once for each setting, and leaves what both report in
# $OUT as NAME.pgbench and NAME.fio.
#
#   guest.sh WEIR IMAGE SECONDS NAME:CONTROL:DEPTH...
#
# IMAGE is an ext4 with a database below pg/. Each run begins with a copy of it.
set -euo pipefail
weir=$1 image=$2 seconds=$3
shift 3
programs=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin | sort -V | tail -1)
work=$(mktemp -d /var/tmp/weir.XXXXXX)
data=$work/mounted/pg
chmod 755 "$work"
mkdir "$work/mounted"
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }

run() { # NAME CONTROL DEPTH
    local server hog
    cp --sparse=always "$image" "$work/db.img"
    cat >"$work/weir.toml" <<TOML
[listen]
nbd = ["unix:$work/nbd.sock"]
metrics = "127.0.0.1:9810"

[pool.p]
control = "$2"

[array.a]
disks = 6
disk = "cheetah-18lp"
raid = "raid5"
size = "20GiB"
nvram = "256MiB"
overhead = "100us"
port_bandwidth = "100MB/s"

[volume.db]
pool = "p"
backend = "array:a:$work/db.img"
size = "1GiB"
# A pool without control accepts an SLO and only measures it.
slo = [{ up_to = "1000iops", read = "40ms", write = "40ms" }]

[volume.hog]
pool = "p"
backend = "array:a:$work/hog.img"
size = "8GiB"
TOML
    "$weir" serve "$work/weir.toml" 2>"$OUT/$1.log" & server=$!
    until [ -S "$work/nbd.sock" ]; do
        kill -0 "$server" || { cat "$OUT/$1.log" >&2; exit 1; }
        sleep 0.1
    done
    nbd-client -unix "$work/nbd.sock" /dev/nbd0 -name db >&2
    mount /dev/nbd0 "$work/mounted"
    echo 3 >/proc/sys/vm/drop_caches
    as_postgres "$programs/pg_ctl" -s -w -t 120 -D "$data" -l "/tmp/$1.log" -o "-c listen_addresses='' -c unix_socket_directories=/tmp" start
    fio --name=hog --ioengine=nbd --uri="nbd+unix:///hog?socket=$work/nbd.sock" --rw=randread --bs=64k \
        --iodepth="$3" --norandommap --time_based --ramp_time=5 --runtime="$seconds" --eta=never \
        --output-format=json --output="$OUT/$1.fio" >/dev/null & hog=$!
    sleep 5
    (sleep $((seconds / 2)) && "$weir" status >"$OUT/$1.status" 2>&1) &
    as_postgres "$programs/pgbench" -h /tmp -n -c 4 -T "$seconds" postgres >"$OUT/$1.pgbench" 2>&1
    wait "$hog"
    as_postgres "$programs/pg_ctl" -s -w -t 120 -D "$data" -m immediate stop
    umount "$work/mounted"
    nbd-client -d /dev/nbd0 >&2
    kill "$server"
    wait "$server" || true
}

modprobe nbd
for setting in "$@"; do
    IFS=: read -r name control depth <<<"$setting"
    run "$name" "$control" "$depth"
done
