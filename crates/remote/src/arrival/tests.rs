//! Tests of what arrives at the other machine and how. What ssh itself does is tested by the application, over a real one.

use super::*;

#[track_caller]
fn check(complaints: &[&str], expected: &str) {
    let complaints: Vec<_> = complaints.iter().map(|&line| line.to_owned()).collect();
    let told = no_way("bench", &complaints);
    assert!(told.contains(expected) && !told.contains('\n'), "{told}");
}

#[test]
fn what_ssh_says_becomes_what_to_do() {
    check(&["Host key verification failed."], "accept it once: ssh bench true");
    check(
        &["@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "Host key verification failed."],
        "ssh-keygen -R bench",
    );
    check(&["bench@h: Permission denied (publickey)."], "does not let us in");
    check(&["ssh: 1: exec: ssh: not found"], "install it: openssh-client");
    check(&["ssh: connect to host h port 22: Connection refused"], "Connection refused; this must work first");
    check(&[], "without a word");
}
