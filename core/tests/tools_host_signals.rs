//! Whatever the host did to its signals, commands run as in a fresh shell. Alone in its process, which it changes.
#![cfg(target_os = "linux")]

#[path = "tool_support/mod.rs"]
mod support;

use serde_json::json;
use support::*;

#[test]
fn signals_and_descriptors_of_the_host_are_its_own() {
    let dir = tempfile::tempdir().unwrap();
    // A descriptor that is not closed on exec.
    let leaked = std::fs::File::open("/dev/zero").unwrap();
    // SAFETY: plain system calls of this test's own process; the sets are plain data.
    unsafe {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&leaked);
        libc::fcntl(fd, libc::F_SETFD, 0);
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
    // Exit codes are known although the kernel is told to forget them.
    let result = call("bash", json!({"command": "exit 7"}), dir.path()).unwrap();
    assert_eq!(result.structured_content.unwrap()["exit_code"], 7);
    assert!(
        text(&call("bash", json!({"command": "kill -TERM $$; sleep 5"}), dir.path()).unwrap()).contains("code 143")
    );
    // Children start with nothing blocked or ignored, and hold none of the host's descriptors.
    let status = ok("bash", json!({"command": "grep -E '^Sig(Blk|Ign)' /proc/$$/status"}), dir.path());
    for line in status.lines() {
        assert_eq!(line.split_whitespace().nth(1), Some("0000000000000000"), "{status}");
    }
    let fds = ok("bash", json!({"command": "ls -l /proc/$$/fd"}), dir.path());
    assert!(!fds.contains("/dev/zero"), "{fds}");
    // A host that collects every child, as some do on SIGCHLD, does not collect ours.
    let thief = std::thread::spawn(|| {
        for _ in 0..300 {
            // SAFETY: the status is not asked for.
            unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    for code in 0..50 {
        let result = call("bash", json!({"command": format!("exit {code}")}), dir.path()).unwrap();
        assert_eq!(result.structured_content.unwrap()["exit_code"], code);
    }
    thief.join().unwrap();
    // The host's settings are as it left them.
    let mine = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = mine.lines().find(|line| line.starts_with("SigIgn")).unwrap();
    let mask = u64::from_str_radix(ignored.split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert!(mask >> (libc::SIGCHLD - 1) & 1 == 1 && mask >> (libc::SIGTERM - 1) & 1 == 1);
    assert_eq!(held().2, 0, "zombies");
}
