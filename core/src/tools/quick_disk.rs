//! Disks so near that a small file on them is not worth handing to another thread.
//!
//! Waking a thread and being woken by it costs more than writing a page to the disk's cache. So small work is done where
//! it is asked for, but only on file systems of this machine: a server that does not answer must hold up a thread that is
//! there to be held up.

use std::path::Path;

/// Most bytes written at once on a thread that has other things to do.
pub(super) const SMALL: usize = 64 * 1024;

/// Whether files in a directory are on a disk of this machine. `false` also when the directory is not there.
#[cfg(target_os = "linux")]
pub(super) fn is_quick(directory: &Path) -> bool {
    /// ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, F2FS, ZFS, bcachefs, overlays.
    const LOCAL: [u32; 9] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x8584_58f6,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
        0x794c_7630,
    ];
    rustix::fs::statfs(directory).is_ok_and(|it| LOCAL.contains(&(it.f_type as u32)))
}

/// Elsewhere no file system is known to be quick.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_quick(_directory: &Path) -> bool {
    false
}
