<?php
// A page that holds its process for 50 ms: 5 ms of work, and a wait as for a database.
$until = hrtime(true) + 5_000_000;
$n = 0;
while (hrtime(true) < $until) {
    $n = crc32((string) $n);
}
usleep(45000);
echo "<!doctype html>\n<title>The application</title>\n<p>Answered.\n";
