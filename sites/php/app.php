<?php
// A page like that of a blog with many plugins, as large as the second document's (69864 bytes). It sends its head, takes memory, works
// through all of it, and sends the rest. What it takes is said by MEMORY (by `SetEnv`, in MB), or for the page where a gallery makes
// thumbnails, `?page=thumbnails`, by THUMBNAILS.
//
// Since its head is out when memory_limit is reached, the answer is a 200 that ends in the middle.

const LENGTH = 69864;
const END = "</main>\n</html>\n";

$head = "<!doctype html>\n<html>\n<title>A page with plugins</title>\n<nav>" . str_repeat('menu ', 2000) . "</nav>\n<main>\n";
echo $head;
flush();

$wanted = ($_GET['page'] ?? '') === 'thumbnails' ? 'THUMBNAILS' : 'MEMORY';
$held = [];
for ($i = 0; $i < 16 * (int) ($_SERVER[$wanted] ?? 4); $i++) {
    $held[] = str_repeat(chr($i % 256), 65000);
}
$sums = '';
for ($pass = 0; $pass < (int) ($_SERVER['PASSES'] ?? 2); $pass++) {
    foreach ($held as $part) {
        $sums = md5($part . $sums);
    }
}
$body = "<p>$sums</p>\n";
echo $body, str_repeat('x', LENGTH - strlen($head) - strlen($body) - strlen(END)), END;
