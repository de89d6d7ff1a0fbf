//! Everything a process started, also what left its process group.

#[cfg(target_os = "linux")]
pub(crate) use linux::ProcessTree;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::ProcessTree;

#[cfg(not(target_os = "linux"))]
mod other {
    use rustix::process::{Pid, Signal, kill_process_group};

    /// The process group of its leader.
    pub(crate) struct ProcessTree(Pid);

    impl ProcessTree {
        pub(crate) fn new(root: Pid) -> ProcessTree {
            ProcessTree(root)
        }

        pub(crate) fn signal(&mut self, signal: Signal) {
            let _ = kill_process_group(self.0, signal);
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;
    use std::os::fd::OwnedFd;

    use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

    /// The process group and session of their leader, and all its descendants, whatever group or session they moved to.
    pub(crate) struct ProcessTree {
        root: Pid,
        /// Those outside of the group that were seen so far. Their parents may be gone the next time.
        strays: Vec<(i32, OwnedFd)>,
    }

    impl ProcessTree {
        pub(crate) fn new(root: Pid) -> ProcessTree {
            ProcessTree { root, strays: Vec::new() }
        }

        /// Signals all of it. The leader must not have been collected: its number is then still its own.
        pub(crate) fn signal(&mut self, signal: Signal) {
            self.find_strays();
            let _ = kill_process_group(self.root, signal);
            for (_, stray) in &self.strays {
                let _ = pidfd_send_signal(stray, signal);
            }
        }

        fn find_strays(&mut self) {
            let known = self.strays.iter().map(|(pid, _)| *pid);
            let root = self.root.as_raw_nonzero().get();
            for stray in strays(root, known.chain([root]).collect()) {
                // A number may have passed on to another process since it was read: a pidfd holds on to the process,
                // and its start time says whether it is the one that was meant.
                let Some(pid) = Pid::from_raw(stray.pid) else { continue };
                let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
                if Process::read(stray.pid).is_some_and(|now| now.started == stray.started) {
                    self.strays.push((stray.pid, held));
                }
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

    /// Processes outside of the group of `root` that belong to `ours` and are not among them.
    fn strays(root: i32, ours: HashSet<i32>) -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let all: Vec<Process> = entries.filter_map(Result::ok).filter_map(number).filter_map(Process::read).collect();
        let mut found = ours.clone();
        loop {
            let before = found.len();
            let belongs = |it: &&Process| it.session == root || found.contains(&it.parent);
            let more: Vec<i32> = all.iter().filter(belongs).map(|it| it.pid).collect();
            found.extend(more);
            if found.len() == before {
                break;
            }
        }
        let stray = |it: &Process| found.contains(&it.pid) && it.group != root && !ours.contains(&it.pid);
        all.into_iter().filter(stray).collect()
    }
}
