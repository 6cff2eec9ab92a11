"""A server of many threads in front of a backend that works on one question at a time.

The backend is a process of its own, as a database is: it takes a connection, waits 20 ms, answers, and takes the next one.
Usage: front.py PORT
"""

import os
import signal
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WAIT = 0.020


def answer_one_at_a_time(door):
    while True:
        asked, _ = door.accept()
        time.sleep(WAIT)
        asked.sendall(b"answer\n")
        asked.close()


def main():
    door = socket.create_server(("127.0.0.1", 0), backlog=128)
    backend = os.fork()
    if backend == 0:
        answer_one_at_a_time(door)
    address = door.getsockname()
    door.close()

    class Front(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            with socket.create_connection(address) as asked:
                body = asked.makefile("rb").read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        # Five otherwise, which would be what limits it.
        request_queue_size = 128

    def end(*_):
        os.kill(backend, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    Server(("127.0.0.1", int(sys.argv[1])), Front).serve_forever()


main()
