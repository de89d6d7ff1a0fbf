//! Everything a process started, also what left its process group.

#[cfg(target_os = "linux")]
pub(crate) use linux::signal_tree;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::signal_tree;

#[cfg(not(target_os = "linux"))]
mod other {
    use rustix::process::{Pid, Signal, kill_process_group};

    /// Signals the process group of its leader `root`.
    pub(crate) fn signal_tree(root: Pid, signal: Signal) {
        let _ = kill_process_group(root, signal);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;

    use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

    /// Signals the process group and session of its leader `root`, and all descendants of `root`, whatever group or
    /// session they moved to. `root` must not have been collected: its number is then still its own.
    pub(crate) fn signal_tree(root: Pid, signal: Signal) {
        let strays = strays(root.as_raw_nonzero().get());
        let _ = kill_process_group(root, signal);
        for stray in strays {
            // A number may have passed on to another process since it was read: a pidfd holds on to the process, and
            // its start time says whether it is the one that was meant.
            let Some(pid) = Pid::from_raw(stray.pid) else { continue };
            let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if Process::read(stray.pid).is_some_and(|now| now.started == stray.started) {
                let _ = pidfd_send_signal(held, signal);
            }
        }
    }

    struct Process {
        pid: i32,
        parent: i32,
        group: i32,
        session: i32,
        started: u64,
    }

    impl Process {
        fn read(pid: i32) -> Option<Process> {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name, in parentheses, may hold anything.
            let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().skip(1);
            let mut number = || fields.next()?.parse().ok();
            let (parent, group, session) = (number()?, number()?, number()?);
            let started = fields.nth(15)?.parse().ok()?;
            Some(Process { pid, parent, group, session, started })
        }
    }

    /// Processes that belong to `root` and are not in its group.
    fn strays(root: i32) -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let all: Vec<Process> = entries.filter_map(Result::ok).filter_map(number).filter_map(Process::read).collect();
        let mut ours: HashSet<i32> = HashSet::from([root]);
        loop {
            let before = ours.len();
            ours.extend(
                all.iter()
                    .filter(|it| it.session == root || ours.contains(&it.parent))
                    .map(|it| it.pid)
                    .collect::<Vec<_>>(),
            );
            if ours.len() == before {
                break;
            }
        }
        all.into_iter().filter(|it| ours.contains(&it.pid) && it.group != root).collect()
    }
}
