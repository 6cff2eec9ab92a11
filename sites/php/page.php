<?php
// A page as shops and blogs have them: some work of PHP's own, a wait as for a database, memory, and a list to print.
$rows = [];
for ($i = 0; $i < 2000; $i++) {
    $rows[] = ['id' => $i, 'name' => md5((string) $i), 'price' => ($i * 7919) % 1000 / 10];
}
usort($rows, fn ($a, $b) => $a['price'] <=> $b['price'] ?: $a['id'] <=> $b['id']);
usleep(5000);
?>
<!doctype html>
<title>A page of PHP</title>
<ol>
<?php foreach (array_slice($rows, 0, 50) as $row): ?>
<li><?= htmlspecialchars($row['name']) ?>: <?= number_format($row['price'], 1) ?></li>
<?php endforeach ?>
</ol>
