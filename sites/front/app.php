<?php
// A page that holds its process for 50 ms: 10 ms of work, and a wait as for a database.
$until = hrtime(true) + 10_000_000;
$n = 0;
while (hrtime(true) < $until) {
    $n = crc32((string) $n);
}
usleep(40000);
echo "<!doctype html>\n<title>The application</title>\n<p>Answered.\n";
