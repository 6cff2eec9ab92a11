//! Control a real server: render its configuration, start, ready, effective settings, stop.

/// Stub to be replaced.
pub fn serve_main(_args: &[std::ffi::OsString]) -> u8 {
    2
}
