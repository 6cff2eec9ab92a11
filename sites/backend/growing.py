"""A server of one thread that grows: of each page it keeps 256 KiB, computes for 8 ms and waits for 2 ms. Usage: growing.py PORT"""

import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

kept = []


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        kept.append(b"x" * (256 << 10))
        end = time.thread_time() + 0.008
        while time.thread_time() < end:
            pass
        time.sleep(0.002)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"done\n")

    def log_message(self, *_):
        pass


class Server(HTTPServer):
    # Five otherwise, which would be what limits it.
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
