<?php
// Sets the site up as its owner would in a browser: php install.php SITE
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = 'localhost';
$_SERVER['REQUEST_URI'] = '/';
require $argv[1] . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
// Nobody reads the mail of a site that lives for minutes.
add_filter('pre_wp_mail', '__return_true');
wp_install('A site to be measured', 'admin', 'admin@example.invalid', false, '', 'admin');
switch_theme('twentytwentythree');
update_option('thumbnail_size_w', 200);
update_option('thumbnail_size_h', 200);
update_option('thumbnail_crop', 1);
for ($post = 1; $post <= 12; $post++) {
    $text = '';
    for ($sentence = 0; $sentence < 60; $sentence++) {
        $text .= "Sentence $sentence of post $post says that a server was measured, changed and measured again. ";
    }
    wp_insert_post(['post_title' => "Post $post", 'post_content' => $text, 'post_status' => 'publish', 'post_author' => 1]);
}
