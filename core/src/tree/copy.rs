//! Where a copy of a session goes, and copying runs of lines into it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use crate::error::{Error, Result};

use super::Durability;
use super::header::Header;
use super::index::Place;
use super::log::Log;
use super::session_file::{create_file, sync_new};
use super::storage::{Storage, StorageFile, append_all};
use super::tree::Tree;

/// Bytes copied at a time.
const PIECE: usize = 1 << 20;
/// Below this size a thread costs more than it saves.
const READ_AHEAD_FROM: u64 = 8 * PIECE as u64;

/// Where a copy goes: a new file, piece by piece, or a buffer in memory.
pub(crate) struct Output {
    file: Option<Box<dyn StorageFile>>,
    path: Option<PathBuf>,
    storage: Arc<dyn Storage>,
    buffer: Vec<u8>,
    /// Bytes before the buffer.
    flushed: u64,
}

impl Output {
    pub(crate) fn start(tree: &Tree, header: &Header, path: Option<&Path>) -> Result<Output> {
        let storage = tree.shared.storage.clone();
        let file = path.map(|path| create_file(&*storage, path, b"", Durability::None)).transpose()?;
        let mut buffer = header.line.clone();
        buffer.push(b'\n');
        Ok(Output { file, path: path.map(Path::to_path_buf), storage, buffer, flushed: 0 })
    }

    pub(crate) fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    pub(crate) fn push_line(&mut self, line: &[u8]) -> Result<Place> {
        let place = Place { offset: self.position(), len: line.len() as u32 };
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        if self.buffer.len() >= PIECE {
            self.flush()?;
        }
        Ok(place)
    }

    /// Copies a run of lines; their LFs lie between them.
    pub(crate) fn push_run(&mut self, log: &Log, start: u64, end: u64) -> Result<()> {
        if self.file.is_some() && end - start >= READ_AHEAD_FROM {
            return self.push_long_run(log, start, end);
        }
        let mut at = start;
        while at < end {
            let len = PIECE.min((end - at) as usize);
            log.read_into(at, len, &mut self.buffer)?;
            at += len as u64;
            if self.buffer.len() >= PIECE {
                self.flush()?;
            }
        }
        self.buffer.push(b'\n');
        Ok(())
    }

    /// Another thread reads while this one writes; two pieces are in memory.
    fn push_long_run(&mut self, log: &Log, start: u64, end: u64) -> Result<()> {
        self.flush()?;
        let (filled, pieces) = mpsc::sync_channel(0);
        let (give_back, spare) = mpsc::channel::<Vec<u8>>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for at in (start..end).step_by(PIECE) {
                    let mut piece = spare.try_recv().unwrap_or_default();
                    let read = log.read_into(at, PIECE.min((end - at) as usize), &mut piece);
                    let over = read.is_err();
                    if filled.send(read.map(|()| piece)).is_err() || over {
                        return;
                    }
                }
            });
            for piece in pieces {
                self.buffer = piece?;
                self.flush()?;
                let _ = give_back.send(std::mem::take(&mut self.buffer));
            }
            Ok::<(), Error>(())
        })?;
        self.buffer.push(b'\n');
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let (Some(file), Some(path)) = (&self.file, &self.path) else { return Ok(()) };
        append_all(&**file, &self.buffer)
            .map_err(|(_, error)| Error::storage("write the new session file", path, &error))?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Takes back what was written.
    pub(crate) fn discard(self, error: Error) -> Error {
        if let (Some(_), Some(path)) = (&self.file, &self.path) {
            let _ = self.storage.remove(path);
        }
        error
    }

    pub(crate) fn finish(mut self, tree: &Tree, path: Option<PathBuf>) -> Result<Log> {
        let durability = tree.shared.durability;
        let synced = self.flush().and_then(|()| match (&self.file, &self.path) {
            (Some(file), Some(path)) => sync_new(&*self.storage, &**file, path, durability),
            _ => Ok(()),
        });
        if let Err(error) = synced {
            return Err(self.discard(error));
        }
        match (self.file.take(), path) {
            (Some(file), Some(path)) => Ok(Log::file(self.storage.clone(), path, file, self.flushed, durability)),
            (_, path) => Ok(Log::buffer(self.storage.clone(), path, durability, std::mem::take(&mut self.buffer))),
        }
    }
}
