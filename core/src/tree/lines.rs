//! Reading a file line by line with a small buffer, whatever the length of the file or of a line.

use std::io;
use std::ops::ControlFlow;

use super::storage::{StorageFile, fill};

/// Bytes read at a time.
const STEP: usize = 256 << 10;

/// Calls `each` for every line of `start..end`, without its LF, until it says stop.
pub(crate) fn for_each_line(
    file: &dyn StorageFile,
    start: u64,
    end: u64,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    buffer.clear();
    let mut at = start;
    // Where the search for the next LF goes on: what lies before holds none.
    let mut searched = 0;
    loop {
        let filled = buffer.len();
        let want = STEP.min((end - at) as usize);
        buffer.resize(filled + want, 0);
        let read = fill(file, at, &mut buffer[filled..])?;
        buffer.truncate(filled + read);
        at += read as u64;
        let last = read == 0 || at >= end;
        let mut from = 0;
        while let Some(found) = memchr::memchr(b'\n', &buffer[searched..]) {
            let stop = searched + found;
            if each(&buffer[from..stop]).is_break() {
                return Ok(());
            }
            from = stop + 1;
            searched = from;
        }
        if last {
            if from < buffer.len() {
                let _ = each(&buffer[from..]);
            }
            return Ok(());
        }
        buffer.drain(..from);
        searched = buffer.len();
    }
}
