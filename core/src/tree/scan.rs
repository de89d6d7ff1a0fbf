//! Reading a whole session file once, on all cores, into facts.
//!
//! The file is cut into blocks of equal size; a line belongs to the block in which it begins. Worker threads read and
//! validate blocks; the caller receives their facts in file order and builds the index from them. Only a few blocks are
//! in memory at any time, whatever the size of the file.

use std::io;
use std::sync::mpsc;

use super::fact::FactBlock;
use super::storage::{StorageFile, fill};

/// Large enough that a block's fixed costs vanish, small enough that the blocks in flight stay under 10 MB.
const BLOCK: u64 = 1 << 20;
/// Below this size a thread costs more than it saves.
const PARALLEL_FROM: u64 = 2 * BLOCK;

/// Reads the lines of `start..end` (`start` is the beginning of a line) and hands their facts to `sink`, in order.
pub(crate) fn scan(file: &dyn StorageFile, start: u64, end: u64, mut sink: impl FnMut(FactBlock)) -> io::Result<()> {
    let threads = match end.saturating_sub(start) {
        len if len < PARALLEL_FROM => 1,
        _ => std::thread::available_parallelism().map_or(1, |count| count.get().min(8)) as u64,
    };
    let blocks = end.saturating_sub(start).div_ceil(BLOCK);
    let read = |block: u64, buffer: &mut Vec<u8>| {
        let from = start + block * BLOCK;
        read_block(file, start, from, (from + BLOCK).min(end), end, buffer)
    };
    if threads == 1 {
        let mut buffer = Vec::new();
        for block in 0..blocks {
            sink(read(block, &mut buffer)?);
        }
        return Ok(());
    }
    std::thread::scope(|scope| {
        let receivers: Vec<_> = (0..threads)
            .map(|first| {
                // One finished block may wait while the next is read.
                let (sender, receiver) = mpsc::sync_channel(1);
                let read = &read;
                scope.spawn(move || {
                    let mut buffer = Vec::new();
                    for block in (first..blocks).step_by(threads as usize) {
                        if sender.send(read(block, &mut buffer)).is_err() {
                            return;
                        }
                    }
                });
                receiver
            })
            .collect();
        for block in 0..blocks {
            let facts = receivers[(block % threads) as usize].recv();
            sink(facts.map_err(|_| io::Error::other("a reader thread died"))??);
        }
        Ok(())
    })
}

/// Facts of the lines of a text in memory that begins at `offset` of the file.
pub(crate) fn scan_bytes(bytes: &[u8], offset: u64) -> FactBlock {
    let mut facts = FactBlock::default();
    read_lines(bytes, offset, &mut facts, true);
    facts
}

/// How much is read first to complete a block's last line; doubled each time.
const REST: u64 = 4 << 10;

/// Facts of the lines that begin in `from..to`. `buffer` gives its room only.
fn read_block(
    file: &dyn StorageFile,
    start: u64,
    from: u64,
    to: u64,
    end: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<FactBlock> {
    let mut facts = FactBlock::default();
    // The byte before tells whether a line begins exactly at `from`.
    let lead = u64::from(from > start);
    buffer.resize((to - from + lead) as usize, 0);
    let filled = fill(file, from - lead, buffer)?;
    buffer.truncate(filled);
    let mut begin = 0;
    if lead == 1 {
        match memchr::memchr(b'\n', buffer) {
            Some(at) if from - 1 + (at as u64) + 1 < to => begin = at + 1,
            _ => return Ok(facts),
        }
    }
    // Complete the last line from the blocks after this one.
    let (mut at, mut step) = (to, REST);
    while at < end && buffer.last() != Some(&b'\n') {
        let known = buffer.len();
        buffer.resize(known + step.min(end - at) as usize, 0);
        let filled = fill(file, at, &mut buffer[known..])?;
        if filled == 0 {
            buffer.truncate(known);
            break;
        }
        let line_end = memchr::memchr(b'\n', &buffer[known..known + filled]).map_or(filled, |found| found + 1);
        buffer.truncate(known + line_end);
        at += filled as u64;
        step = (step * 2).min(BLOCK);
    }
    read_lines(&buffer[begin..], from - lead + begin as u64, &mut facts, false);
    Ok(facts)
}

fn read_lines(bytes: &[u8], offset: u64, facts: &mut FactBlock, always_sealed: bool) {
    let mut at = 0;
    while at < bytes.len() {
        let (end, sealed) = match memchr::memchr(b'\n', &bytes[at..]) {
            Some(found) => (at + found, true),
            None => (bytes.len(), always_sealed),
        };
        facts.read_line(&bytes[at..end], offset + at as u64, sealed);
        at = end + 1;
    }
}
