"""A server of one thread that computes for 5 ms for each page. Usage: one_thread.py PORT"""

import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        end = time.perf_counter() + 0.005
        while time.perf_counter() < end:
            pass
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
