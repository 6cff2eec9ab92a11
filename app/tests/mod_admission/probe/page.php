<?php
// Does what probe.h says, in PHP: in a process of the server, or of PHP-FPM.
$folder = $_SERVER['PROBE_HOME'];
$say = fn(string $word) => file_put_contents(
    "$folder/log",
    "$word " . ($_GET['id'] ?? '-') . ' ' . hrtime(true) . ' ' . getmypid() . ' ' . getmypid() . "\n",
    FILE_APPEND
);
$say('start');
$gate = isset($_GET['gate']) ? @fopen("$folder/gates/$_GET[gate]", 'r') : false;
if ($gate) {
    flock($gate, LOCK_SH);
    fclose($gate);
}
usleep((int) ($_GET['work'] ?? 0));
if (isset($_GET['virtual'])) {
    virtual($_GET['virtual']);
}
$say('stop');
echo str_repeat('x', (int) ($_GET['body'] ?? 0)), 'done ', $_GET['id'] ?? '-', "\n";
