<?php
// WordPress in a server of its own, on a port that nobody knows beforehand. DB is the socket of its database, CRON says whether visitors
// start wp-cron, and PLUGINS=none leaves the plugin out.

define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:' . ($_SERVER['DB'] ?? getenv('DB')));
define('DB_CHARSET', 'utf8mb4');
$table_prefix = 'wp_';

$host = $_SERVER['HTTP_HOST'] ?? 'localhost';
define('WP_HOME', "http://$host");
define('WP_SITEURL', "http://$host");

// Else WordPress raises the limit by itself, to 256M for pictures.
define('WP_MEMORY_LIMIT', ini_get('memory_limit'));
define('WP_MAX_MEMORY_LIMIT', ini_get('memory_limit'));

// A visit that finds something due sends a request to /wp-cron.php of its own server, at most so often.
define('DISABLE_WP_CRON', ($_SERVER['CRON'] ?? 'off') !== 'on');
define('WP_CRON_LOCK_TIMEOUT', 1);

// Where there is no such folder WordPress has no plugin.
if (($_SERVER['PLUGINS'] ?? '') === 'none') {
    define('WPMU_PLUGIN_DIR', __DIR__ . '/no-plugins');
}

// Nothing is asked of the internet.
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_AUTO_UPDATE_CORE', false);
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT'] as $key) {
    define($key, "only for measuring $key");
}

if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
