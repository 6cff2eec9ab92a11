<?php
// A page that asks a database: some of it side by side with others (2 ms), some of it one at a time (4 ms), as for a row that everybody wants.
// DB says where it is (host:port, or the path of a socket), PERSISTENT keeps the connection for the next request of this process, and
// SLOTS lets only 8 pages at a time ask at all: the others wait for a lock on one of 8 files.
$db = getenv('DB');
$slot = null;
if ($slots = getenv('SLOTS')) {
    $slot = fopen($slots . '/' . (getmypid() % 8), 'r');
    flock($slot, LOCK_EX);
}
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
try {
    [$host, $port] = $db[0] === '/' ? ['localhost', 0] : explode(':', $db);
    $socket = $db[0] === '/' ? $db : null;
    $link = new mysqli((getenv('PERSISTENT') ? 'p:' : '') . $host, 'shop', '', 'shop', (int) $port, $socket);
    $link->query('SELECT SLEEP(0.002)');
    $got = $link->query("SELECT GET_LOCK('stock', 20)")->fetch_row()[0];
    $link->query('SELECT SLEEP(0.004)');
    $left = $link->query('SELECT left_over FROM stock WHERE id = 1')->fetch_row()[0];
    $link->query("DO RELEASE_LOCK('stock')");
    $link->close();
} catch (mysqli_sql_exception $error) {
    // A page that says 200 with an error inside would count as good.
    http_response_code(503);
    exit('no answer from the database: ' . $error->getMessage() . "\n");
}
echo $got == 1 ? "in stock: $left\n" : "the stock is locked\n";
