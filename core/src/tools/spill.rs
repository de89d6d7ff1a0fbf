//! The file that long output goes to (T262, T263).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Most bytes of a file: a command that never stops talking must not fill the disk.
pub(super) const MOST: usize = 1 << 30;

/// A file that only its owner can read. It stays when this goes; [`remove`](SpillFile::remove) takes it away.
pub(super) struct SpillFile {
    file: File,
    path: PathBuf,
    /// Bytes that it still takes.
    room: usize,
    /// There was more than it takes.
    cut: bool,
}

impl SpillFile {
    /// Makes a file that nobody could have put there before, for at most `most` bytes, and writes `start`.
    pub(super) fn create(prefix: &str, start: &[u8], most: usize) -> io::Result<SpillFile> {
        let (file, path) = create(prefix)?;
        let mut spill = SpillFile { file, path, room: most, cut: false };
        match spill.write(start) {
            Ok(()) => Ok(spill),
            Err(error) => {
                spill.remove();
                Err(error)
            }
        }
    }

    /// Adds to it, as far as there is room.
    pub(super) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        let fits = data.len().min(self.room);
        self.cut |= fits < data.len();
        self.room -= fits;
        self.file.write_all(&data[..fits])
    }

    /// Reads bytes of it.
    pub(super) fn read(&mut self, from: usize, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.seek(SeekFrom::Start(from as u64))?;
        self.file.read_exact(&mut bytes)?;
        self.file.seek(SeekFrom::End(0))?;
        Ok(bytes)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn create(prefix: &str) -> io::Result<(File, PathBuf)> {
    use std::os::unix::fs::OpenOptionsExt;
    let directory = std::env::temp_dir();
    for _ in 0..16 {
        let random = uuid::Uuid::new_v4().as_u128() as u64;
        let path = directory.join(format!("{prefix}-{random:016x}.log"));
        match File::options().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
