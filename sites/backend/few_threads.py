"""A server of four threads for all its connections, as Tomcat's and gunicorn's threads are: for each page it waits 20 ms.

A connection that says something waits for a thread. The thread answers, answers what is said next as well if that is at once, and leaves
the connection to whoever is free when it says something again. So some answers come as fast as if nobody else were there.
Usage: few_threads.py PORT
"""

import select
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler

THREADS = 4
WAIT = 0.020
IN_A_ROW = 2
PATIENCE_MS = 5

connections = {}
ready = select.epoll()


class Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one segment: a second one would wait until the first is acknowledged.
    wbufsize = -1

    def handle(self):
        """Nothing yet: a thread does so when something was said."""

    def finish(self):
        """It stays open."""

    def do_GET(self):
        time.sleep(WAIT)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"done\n")

    def log_message(self, *_):
        pass


def answer(file):
    connection = connections[file]
    more = select.poll()
    more.register(file, select.POLLIN)
    for _ in range(IN_A_ROW):
        connection.handle_one_request()
        if connection.close_connection:
            connections.pop(file)
            connection.connection.close()
            return
        if not more.poll(PATIENCE_MS):
            break
    ready.modify(file, select.EPOLLIN | select.EPOLLONESHOT)


def main():
    door = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
    ready.register(door, select.EPOLLIN)
    threads = ThreadPoolExecutor(THREADS)
    while True:
        for file, _ in ready.poll():
            if file == door.fileno():
                accepted, address = door.accept()
                connections[accepted.fileno()] = Connection(accepted, address, None)
                ready.register(accepted, select.EPOLLIN | select.EPOLLONESHOT)
            else:
                threads.submit(answer, file)


main()
