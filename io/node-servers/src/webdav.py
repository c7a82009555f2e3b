# A WebDAV server of the folder "root" in the folder of the first argument, until the standard input ends.
import os
import sys
import threading

from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp

application = WsgiDAVApp(
    {
        "provider_mapping": {"/": os.path.join(sys.argv[1], "root")},
        "simple_dc": {"user_mapping": {"*": {"weir": {"password": "of the tests"}}}},
        "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
        "verbose": 0,
    }
)
# A thread for each connection: an upload that waits would otherwise hold up all others.
server = wsgi.Server(("127.0.0.1", 0), application, numthreads=128, request_queue_size=128)
server.prepare()
threading.Thread(target=server.serve, daemon=True).start()
print(f"listening {server.bind_addr[1]}", flush=True)
sys.stdin.read()
os._exit(0)
