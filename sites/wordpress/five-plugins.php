<?php
/*
Plugin Name: Five plugins' worth of work
Description: What sites with five plugins do for each page: translations, related posts, a list for search engines, statistics, a gallery.
*/

// 1. Translations: the whole catalogue is read for each page.
const SENTENCES = 140000;

function five_catalogue(): array
{
    $catalogue = [];
    for ($number = 0; $number < SENTENCES; $number++) {
        $catalogue["sentence-$number"] = "The translation of the sentence with the number $number, as it stands in a catalogue";
    }
    return $catalogue;
}

// 2. Related posts: which words stand where.
function five_index(): array
{
    $index = [];
    foreach (get_posts(['numberposts' => -1]) as $post) {
        foreach (preg_split('/\W+/', strtolower($post->post_content), -1, PREG_SPLIT_NO_EMPTY) as $word) {
            $index[$word][$post->ID] = ($index[$word][$post->ID] ?? 0) + 1;
        }
    }
    return $index;
}

// 3. For search engines: every post with its address and description.
function five_list(): array
{
    $describe = fn ($post) => [get_permalink($post), wp_trim_words($post->post_content, 20)];
    return array_map($describe, get_posts(['numberposts' => -1]));
}

// 4. Statistics: each visit is written down, in one statement, so that none is lost.
function five_count(): void
{
    global $wpdb;
    add_option('five_visits', '0', '', 'no');
    $wpdb->query("UPDATE {$wpdb->options} SET option_value = option_value + 1 WHERE option_name = 'five_visits'");
}

// 5. A gallery: POST of a JPEG to /?gallery=add makes it an upload with thumbnails, and an index of its colours, every second pixel.
function five_gallery_add(): void
{
    require_once ABSPATH . 'wp-admin/includes/image.php';
    $file = wp_upload_bits('picture-' . wp_generate_uuid4() . '.jpg', null, file_get_contents('php://input'));
    if ($file['error']) {
        wp_die($file['error'], '', ['response' => 500]);
    }
    $id = wp_insert_attachment(['post_title' => 'Picture', 'post_mime_type' => 'image/jpeg', 'post_status' => 'inherit'], $file['file']);
    $made = wp_generate_attachment_metadata($id, $file['file']);
    $picture = imagecreatefromjpeg($file['file']);
    $colours = [];
    for ($y = 0, $height = imagesy($picture); $y < $height; $y++) {
        for ($x = 0, $width = imagesx($picture); $x < $width; $x += 2) {
            $colours[] = imagecolorat($picture, $x, $y) & 0xf0f0f0;
        }
    }
    $made['colours'] = count(array_flip($colours));
    wp_update_attachment_metadata($id, $made);
    $small = $made['sizes']['thumbnail'] ?? ['width' => 0, 'height' => 0];
    printf("thumbnail %dx%d, %d pixels\n<!-- whole -->\n", $small['width'], $small['height'], count($colours));
    // What was uploaded goes again, so that trials do not fill the disk.
    wp_delete_attachment($id, true);
    exit;
}

add_action('init', function () {
    $GLOBALS['five'] = [five_catalogue()];
    // Something is always due.
    if (!wp_next_scheduled('five_due')) {
        wp_schedule_single_event(time(), 'five_due');
    }
    if (($_GET['gallery'] ?? '') === 'add') {
        five_gallery_add();
    }
});
add_action('wp_footer', function () {
    array_push($GLOBALS['five'], five_index(), five_list());
    five_count();
    printf("<p>%d words</p>\n<!-- whole -->\n", count($GLOBALS['five'][1]));
}, 9999);
add_action('five_due', fn () => usleep(20000));
