//! The operating system's files with somebody looking over our shoulder, who may fail, change or count any call.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use branchline::tree::{FileFacts, FileMode, OsStorage, Storage, StorageFile};

/// A call that reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Open,
    CreateDir,
    Rename,
    SyncDir,
    Permissions,
    Read,
    Append,
    Sync,
    Truncate,
    Lock,
    Facts,
}

/// Who looks. An error takes the place of the call.
pub(crate) trait Watch: Debug + Clone + Send + Sync + 'static {
    fn before(&self, call: Call) -> io::Result<()>;

    fn opened(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn append(&self, file: &dyn StorageFile, bytes: &[u8]) -> io::Result<usize> {
        self.before(Call::Append)?;
        file.append(bytes)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Watched<W>(pub(crate) W);

#[derive(Debug)]
struct WatchedFile<W> {
    file: Box<dyn StorageFile>,
    watch: W,
}

impl<W: Watch> Storage for Watched<W> {
    fn open(&self, path: &Path, mode: FileMode) -> io::Result<Box<dyn StorageFile>> {
        self.0.before(Call::Open)?;
        let file = OsStorage.open(path, mode)?;
        self.0.opened(path)?;
        Ok(Box::new(WatchedFile { file, watch: self.0.clone() }))
    }
    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        OsStorage.facts(path)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.before(Call::CreateDir)?;
        OsStorage.create_dir_all(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.before(Call::Rename)?;
        OsStorage.rename(from, to)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.before(Call::SyncDir)?;
        OsStorage.sync_dir(path)
    }
    fn copy_permissions(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.before(Call::Permissions)?;
        OsStorage.copy_permissions(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        OsStorage.remove(path)
    }
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        OsStorage.canonicalize(path)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        OsStorage.list(directory)
    }
}

impl<W: Watch> StorageFile for WatchedFile<W> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.watch.before(Call::Read)?;
        self.file.read_at(buffer, offset)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.watch.append(&*self.file, bytes)
    }
    fn appended_to(&self) -> io::Result<Option<u64>> {
        self.file.appended_to()
    }
    fn sync(&self) -> io::Result<()> {
        self.watch.before(Call::Sync)?;
        self.file.sync()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.watch.before(Call::Truncate)?;
        self.file.truncate(len)
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.watch.before(Call::Lock)?;
        self.file.try_lock()
    }
    fn facts(&self) -> io::Result<FileFacts> {
        self.watch.before(Call::Facts)?;
        self.file.facts()
    }
}
