#!/usr/bin/python3
"""A CGI program that takes 40 MB, waits half a second with them, as for a database, and answers."""

import time

held = b"x" * (40 << 20)
time.sleep(0.5)
print("Content-Type: text/plain\n\ndone")
