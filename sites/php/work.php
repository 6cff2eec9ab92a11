<?php
// A page of as much work as it is asked for: `?cpu=5` computes for 5 ms of CPU time, `?wait=10` waits for 10 ms, as for a database.
function spent_us(): int
{
    $used = getrusage();
    return 1000000 * ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) + $used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec'];
}

$end = spent_us() + 1000 * (int) ($_GET['cpu'] ?? 0);
$sum = '';
while (spent_us() < $end) {
    for ($i = 0; $i < 100; $i++) {
        $sum = md5($sum . $i);
    }
}
usleep(1000 * (int) ($_GET['wait'] ?? 0));
echo "done\n";
