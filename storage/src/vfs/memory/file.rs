//! One file of the disk in memory: what programs see, what the disk has, and what lies between.

use std::io;
use std::sync::{Arc, Mutex};

use super::{MemFs, lock};
use crate::vfs::VfsFile;

/// What a disk writes as a whole: a sector is either the old or the new one.
const SECTOR_BYTES: u64 = 512;

/// Invariants: applying `pending` to `durable` gives `visible`, but for what a failed sync lost.
#[derive(Clone, Default)]
pub(super) struct Content {
    visible: Image,
    durable: Image,
    pending: Vec<Change>,
}

/// Bytes of which those beyond the stored ones, up to the length, are zero: a file of 64 MiB that
/// was only allocated costs nothing.
#[derive(Clone, Default)]
struct Image {
    stored: Vec<u8>,
    length: u64,
}

#[derive(Clone)]
enum Change {
    Write { offset: u64, data: Vec<u8> },
    SetLength(u64),
}

impl Image {
    fn write(&mut self, offset: u64, data: &[u8]) {
        let start = index(offset);
        let end = start + data.len();
        if self.stored.len() < end {
            self.stored.resize(end, 0);
        }
        self.stored[start..end].copy_from_slice(data);
        self.length = self.length.max(position(end));
    }

    fn set_length(&mut self, length: u64) {
        self.length = length;
        self.stored.truncate(index(length));
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, data } => self.write(*offset, data),
            Change::SetLength(length) => self.set_length(*length),
        }
    }
}

impl Content {
    fn change(&mut self, change: Change) {
        self.visible.apply(&change);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            self.durable.apply(&change);
        }
    }

    /// Forgets that writes are still to be synced. Changes of the length stay pending: a system
    /// keeps those apart from its page cache.
    pub(super) fn lose_dirty(&mut self) {
        self.pending
            .retain(|change| matches!(change, Change::SetLength(_)));
    }

    pub(super) fn rewrite(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::mem::take(&mut self.visible).stored;
        change(&mut bytes);
        let length = position(bytes.len());
        self.visible = Image {
            stored: bytes,
            length,
        };
        self.durable = self.visible.clone();
        self.pending.clear();
    }

    /// The file after a power cut in which each un-synced sector and length `survives` or not.
    pub(super) fn after_crash(&self, mut survives: impl FnMut() -> bool) -> Self {
        let mut image = self.durable.clone();
        for change in &self.pending {
            match change {
                Change::SetLength(length) if survives() => image.set_length(*length),
                Change::SetLength(_) => {}
                Change::Write { offset, data } => {
                    write_surviving(&mut image, *offset, data, &mut survives);
                }
            }
        }
        Self {
            visible: image.clone(),
            durable: image,
            pending: Vec::new(),
        }
    }
}

/// Writes the surviving sectors; a sector beyond the end needs the new length to survive too.
fn write_surviving(
    image: &mut Image,
    offset: u64,
    data: &[u8],
    survives: &mut impl FnMut() -> bool,
) {
    let grows = survives();
    let mut done = 0;
    while done < data.len() {
        let start = offset + position(done);
        let sector_end = (start / SECTOR_BYTES + 1) * SECTOR_BYTES;
        let count = index(sector_end - start).min(data.len() - done);
        let piece = &data[done..done + count];
        done += count;
        if !survives() {
            continue;
        }
        if grows || start + position(count) <= image.length {
            image.write(start, piece);
        }
    }
}

pub(super) struct MemFile {
    pub(super) disk: MemFs,
    pub(super) content: Arc<Mutex<Content>>,
}

impl VfsFile for MemFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = lock(&self.content);
        let image = &content.visible;
        let left = image.length.saturating_sub(offset);
        let count = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let start = image
            .stored
            .len()
            .min(usize::try_from(offset).unwrap_or(usize::MAX));
        let stored = &image.stored[start..];
        let copied = count.min(stored.len());
        out[..copied].copy_from_slice(&stored[..copied]);
        out[copied..count].fill(0);
        Ok(count)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        lock(&self.content).change(Change::Write {
            offset,
            data: data.to_vec(),
        });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.before_sync();
        lock(&self.content).sync();
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        lock(&self.content).change(Change::SetLength(length));
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut content = lock(&self.content);
        if content.visible.length < length {
            content.change(Change::SetLength(length));
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.content).visible.length)
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("a file in memory is smaller than the address space")
}

fn position(length: usize) -> u64 {
    u64::try_from(length).expect("a length fits 64 bits")
}
