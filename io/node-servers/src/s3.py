# An S3 server with the bucket "bulk", until the standard input ends.
import logging
import os
import sys
import urllib.request

from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/bulk", method="PUT"))
print(f"listening {port}", flush=True)
sys.stdin.read()
os._exit(0)
