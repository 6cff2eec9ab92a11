<?php
// A page that reads 20 rows from all over a large table.
$ids = [];
for ($i = 0; $i < 20; $i++) {
    $ids[] = random_int(1, (int) getenv('ROWS'));
}
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
try {
    $link = new mysqli('localhost', 'shop', '', 'shop', 0, getenv('DB'));
    $rows = $link->query('SELECT text FROM items WHERE id IN (' . implode(',', $ids) . ')')->fetch_all();
} catch (mysqli_sql_exception $error) {
    http_response_code(503);
    exit('no answer from the database: ' . $error->getMessage() . "\n");
}
echo count($rows) > 0 ? "rows\n" : "none\n";
