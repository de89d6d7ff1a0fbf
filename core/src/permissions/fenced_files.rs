//! The files of a call that may not leave some directories.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::fence::Fence;
use super::replace_at::replace;
use crate::tools::local;
use crate::tools::operations::{Access, DirEntry, FileOperations, Metadata, Operation, Replaced};

/// Files behind a fence. The disk's own are opened from the fence's roots; for those that the host serves the host says
/// where they really are, and is believed.
pub(super) struct FencedFiles(pub(super) Arc<Fence>);

/// Opening must not wait for the other end of a pipe.
const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

impl FencedFiles {
    /// Does `disk` beside the worker threads, or for a file that the host serves checks where it is and asks the host.
    fn choose<T: Send + 'static>(
        &self,
        path: &Path,
        disk: impl FnOnce(&Fence, &Path) -> io::Result<T> + Send + 'static,
        host: impl FnOnce(&dyn FileOperations, &Path) -> Operation<T> + Send + 'static,
    ) -> Operation<T> {
        let (fence, path) = (self.0.clone(), path.to_path_buf());
        Box::pin(async move {
            let inner = fence.inner().clone();
            match inner.replaced().await? {
                Replaced::All => {
                    fence.check(&host_path(&*inner, &path).await?)?;
                    host(&*inner, &path).await
                }
                replaced if replaced.contains(&path) => {
                    fence.check(&path)?;
                    host(&*inner, &path).await
                }
                _ => local::blocking(move || disk(&fence, &path)).await,
            }
        })
    }
}

/// Where the host says a path leads, or its directory when there is nothing yet.
async fn host_path(files: &dyn FileOperations, path: &Path) -> io::Result<PathBuf> {
    match files.real_path(path).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok(Box::pin(host_path(files, parent)).await?.join(name)),
            _ => Err(error),
        },
        other => other,
    }
}

impl FileOperations for FencedFiles {
    fn metadata(&self, path: &Path) -> Operation<Metadata> {
        self.choose(path, |fence, path| fence.facts(path), |files, path| files.metadata(path))
    }

    fn read(&self, path: &Path) -> Operation<Vec<u8>> {
        let disk = |fence: &Fence, path: &Path| {
            let mut out = Vec::new();
            File::from(fence.open(path, LOOK)?).read_to_end(&mut out)?;
            Ok(out)
        };
        self.choose(path, disk, |files, path| files.read(path))
    }

    fn read_range(&self, path: &Path, offset: u64, length: usize) -> Operation<Vec<u8>> {
        let disk =
            move |fence: &Fence, path: &Path| local::read_at_most(&File::from(fence.open(path, LOOK)?), offset, length);
        self.choose(path, disk, move |files, path| files.read_range(path, offset, length))
    }

    fn write(&self, path: &Path, content: Vec<u8>) -> Operation<()> {
        let content = Arc::new(content);
        let theirs = content.clone();
        let disk = move |fence: &Fence, path: &Path| replace(&fence.place(path)?, &content);
        let host = move |files: &dyn FileOperations, path: &Path| files.write(path, Arc::unwrap_or_clone(theirs));
        let (fence, path) = (self.0.clone(), path.to_path_buf());
        // Writing goes through the host for every file unless it replaces none.
        Box::pin(async move {
            let inner = fence.inner().clone();
            match inner.replaced().await? {
                Replaced::None => local::blocking(move || disk(&fence, &path)).await,
                Replaced::All => {
                    fence.check(&host_path(&*inner, &path).await?)?;
                    host(&*inner, &path).await
                }
                replaced if replaced.contains(&path) => {
                    fence.check(&path)?;
                    host(&*inner, &path).await
                }
                Replaced::Files(_) => {
                    let (watch, at) = (fence.clone(), path.clone());
                    let real = local::blocking(move || watch.place(&at).map(|place| place.real)).await?;
                    host(&*inner, &real).await
                }
            }
        })
    }

    fn access(&self, path: &Path, access: Access) -> Operation<()> {
        let disk = move |fence: &Fence, path: &Path| fence.access(path, access);
        self.choose(path, disk, move |files, path| files.access(path, access))
    }

    fn create_dirs(&self, path: &Path) -> Operation<()> {
        self.choose(path, |fence, path| fence.create_directories(path), |files, path| files.create_dirs(path))
    }

    fn read_dir(&self, path: &Path) -> Operation<Vec<DirEntry>> {
        let disk = |fence: &Fence, path: &Path| {
            let mut out = Vec::new();
            fence.list(path, |name, kind| {
                out.push(DirEntry { name, kind });
                true
            })?;
            Ok(out)
        };
        self.choose(path, disk, |files, path| files.read_dir(path))
    }

    fn real_path(&self, path: &Path) -> Operation<PathBuf> {
        self.choose(path, |fence, path| fence.real_path(path), |files, path| files.real_path(path))
    }

    fn home(&self) -> Option<PathBuf> {
        self.0.inner().home()
    }

    /// Everything: nothing may go past the fence.
    fn replaced(&self) -> Operation<Replaced> {
        Box::pin(std::future::ready(Ok(Replaced::All)))
    }
}
