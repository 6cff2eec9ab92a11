<?php
// A page that works for 50 ms of CPU time and is sent when it is whole. With LOOKS set it sends a byte now and then instead: only who
// writes learns that the visitor is gone, and PHP ends a page then, unless ignore_user_abort is on.
$looks = getenv('LOOKS');
$sum = 0;
for ($part = 0; $part < 10; $part++) {
    $until = getrusage()['ru_utime.tv_usec'] + 1e6 * getrusage()['ru_utime.tv_sec'] + 5000;
    while (getrusage()['ru_utime.tv_usec'] + 1e6 * getrusage()['ru_utime.tv_sec'] < $until) {
        for ($n = 0; $n < 200; $n++) {
            $sum = crc32((string) ($sum + $n));
        }
    }
    if ($looks) {
        echo "<!-- $part -->\n";
        flush();
    }
}
echo "<!doctype html>\n<title>A slow page</title>\n<p>Whole.\n";
