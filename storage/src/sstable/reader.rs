//! Opens a table and looks up single keys.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::Found;
use super::block::{Block, BlockFault};
use super::cache::{BlockCache, BlockKey, TableId};
use super::error::SstableError;
use super::filter::{self, Filter};
use super::format::{FOOTER_BYTES, Footer, FooterFault, Handle, VERSION, open_block};
use super::properties::{Birth, Properties};
use crate::codec::long;
use crate::error::Corruption;
use crate::file_number::FileNumber;
use crate::internal_key::Trailer;
use crate::salt::Salt;
use crate::sequence_number::SequenceNumber;
use crate::vfs::{Vfs, VfsFile, read_full};

/// What is known of a table before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SstableFile {
    /// The number in its name.
    pub(crate) number: FileNumber,
    /// Its length.
    pub(crate) bytes: u64,
    /// Which table it is; a copy from another database had another number there.
    pub(crate) birth: Birth,
}

/// What memory alone knows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CachedLookup {
    /// This version decides.
    Hit(Found),
    /// The table has no version of the key that may be seen.
    Absent,
    /// [`SstableReader::get`] finds out, and may have to read.
    NeedsDisk,
}

/// An open table. It keeps index and filter in memory and the file open, also when its name is
/// gone.
pub(crate) struct SstableReader {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    bytes: u64,
    id: TableId,
    salt: Salt,
    index: Block,
    index_offset: u64,
    two_level_index: bool,
    filter: Option<Filter>,
    properties: Properties,
    cache: Arc<BlockCache>,
}

impl SstableReader {
    /// Opens the table `table` in `directory`. Footer, index, filter and properties are read and
    /// checked, data blocks are not.
    pub(crate) fn open(
        vfs: &dyn Vfs,
        directory: &Path,
        table: SstableFile,
        cache: Arc<BlockCache>,
    ) -> Result<Self, SstableError> {
        let path = directory.join(table.number.sstable_name());
        let file = open_file(vfs, &path, table.bytes)?;
        let footer_offset = table.bytes.saturating_sub(long(FOOTER_BYTES));
        let footer = read(&*file, &path, footer_offset, FOOTER_BYTES)?;
        let footer = decode_footer(&footer, &path, table.bytes)?;
        let block = |handle: Handle| read_block(&*file, &path, handle, footer.salt);

        let corrupt = |handle: Handle| {
            let (path, offset) = (&path, handle.offset);
            move |fault: &str| SstableError::from(Corruption::new(path, offset, fault))
        };
        let properties =
            Properties::decode(&block(footer.properties)?).map_err(corrupt(footer.properties))?;
        if properties.birth != table.birth {
            let fault = "the file is another table than the one that is expected here";
            return Err(corrupt(footer.properties)(fault));
        }
        let filter = footer
            .filter
            .map(|handle| {
                let fault = "the filter cannot be read";
                Filter::decode(block(handle)?.into()).ok_or_else(|| corrupt(handle)(fault))
            })
            .transpose()?;
        let index = Block::decode(block(footer.index)?.into())
            .map_err(|fault| corrupt(footer.index)(fault.0))?;
        Ok(Self {
            bytes: table.bytes,
            id: TableId::new(table.birth),
            salt: footer.salt,
            index,
            index_offset: footer.index_leads_below(),
            two_level_index: footer.two_level_index,
            filter,
            properties,
            cache,
            file,
            path,
        })
    }

    /// The newest version of `user_key` at or below `sequence`. Reads at most one data block and
    /// one partition of the index.
    pub(crate) fn get(
        &self,
        user_key: &[u8],
        sequence: SequenceNumber,
    ) -> Result<Option<Found>, SstableError> {
        let load = |handle| self.block(handle, true).map(Some);
        match self.search(user_key, sequence, load)? {
            CachedLookup::Hit(found) => Ok(Some(found)),
            CachedLookup::Absent => Ok(None),
            CachedLookup::NeedsDisk => unreachable!("every block was loaded"),
        }
    }

    /// The same as far as memory knows; never reads the file.
    pub(crate) fn get_cached(&self, user_key: &[u8], sequence: SequenceNumber) -> CachedLookup {
        let load = |handle| Ok(self.cached_block(handle));
        // What is wrong is said by `get`, which meets the same fault.
        self.search(user_key, sequence, load)
            .unwrap_or(CachedLookup::NeedsDisk)
    }

    /// At most `bytes_max` bytes of the file from `offset` on, as they are; fewer only at its end.
    pub(crate) fn read_file(&self, offset: u64, bytes_max: usize) -> Result<Bytes, SstableError> {
        let left = self.bytes.saturating_sub(offset);
        let length = usize::try_from(left).map_or(bytes_max, |left| left.min(bytes_max));
        read(&*self.file, &self.path, offset, length).map(Bytes::from)
    }

    /// The length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the table holds.
    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// A fault of the table as a whole.
    pub(crate) fn corruption(&self, fault: impl Into<String>) -> SstableError {
        Corruption::new(&self.path, 0, fault).into()
    }

    /// The memory that index and filter take for as long as the table is open.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.index.bytes() + self.filter.as_ref().map_or(0, Filter::bytes)
    }

    fn search(
        &self,
        user_key: &[u8],
        sequence: SequenceNumber,
        load: impl Fn(Handle) -> Result<Option<Block>, SstableError>,
    ) -> Result<CachedLookup, SstableError> {
        let outside = user_key < &*self.properties.smallest || user_key > &*self.properties.largest;
        if outside {
            return Ok(CachedLookup::Absent);
        }
        let filtered = |filter: &Filter| !filter.may_contain(filter::hash(user_key));
        if self.filter.as_ref().is_some_and(filtered) {
            self.cache.counters().filtered();
            return Ok(CachedLookup::Absent);
        }
        let trailer = Trailer::newest_at(sequence);
        let mut handle = self.leads_to(&self.index, self.index_offset, user_key, trailer)?;
        if self.two_level_index {
            let Some(partition) = load(handle)? else {
                return Ok(CachedLookup::NeedsDisk);
            };
            handle = self.leads_to(&partition, handle.offset, user_key, trailer)?;
        }
        let Some(block) = load(handle)? else {
            return Ok(CachedLookup::NeedsDisk);
        };
        let place = block
            .find(user_key, trailer)
            .map_err(|fault| self.corrupt(handle.offset, fault))?;
        let place = place.filter(|place| place.is_user_key);
        if place.is_none() && self.filter.is_some() {
            self.cache.counters().passed_in_vain();
        }
        let found = place.map(|place| Found {
            sequence: place.trailer.sequence(),
            kind: place.trailer.kind(),
            value: block.value(&place),
        });
        Ok(found.map_or(CachedLookup::Absent, CachedLookup::Hit))
    }

    /// The block to which an index leads for a place within the table; the index lies at `offset`.
    fn leads_to(
        &self,
        index: &Block,
        offset: u64,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<Handle, SstableError> {
        let place = index
            .find(user_key, trailer)
            .map_err(|fault| self.corrupt(offset, fault))?;
        let Some(place) = place else {
            let fault = BlockFault("the index ends before the last key of the table");
            return Err(self.corrupt(offset, fault));
        };
        self.handle(index.value_slice(&place), offset)
    }

    /// How many blocks lie on the way to an entry: index, perhaps a partition of it, data.
    pub(super) fn depth(&self) -> usize {
        if self.two_level_index { 3 } else { 2 }
    }

    /// The index, where every way begins, and its place.
    pub(super) fn root(&self) -> (Block, u64) {
        (self.index.clone(), self.index_offset)
    }

    /// The block that an entry of an index with this value leads to; the index lies at `offset`.
    pub(super) fn handle(&self, value: &[u8], offset: u64) -> Result<Handle, SstableError> {
        let fault = BlockFault("the index leads out of the table");
        Handle::decode(value)
            .filter(|handle| handle.end().is_some_and(|end| end <= self.index_offset))
            .ok_or_else(|| self.corrupt(offset, fault))
    }

    /// Reads a block, or takes it from the cache; `keep` leaves it there.
    pub(super) fn block(&self, handle: Handle, keep: bool) -> Result<Block, SstableError> {
        if let Some(block) = self.cached_block(handle) {
            return Ok(block);
        }
        self.cache.counters().missed();
        let bytes = read_block(&*self.file, &self.path, handle, self.salt)?;
        let block =
            Block::decode(bytes.into()).map_err(|fault| self.corrupt(handle.offset, fault))?;
        if keep {
            self.cache.insert(self.key(handle), &block);
        }
        Ok(block)
    }

    fn cached_block(&self, handle: Handle) -> Option<Block> {
        self.cache.get(self.key(handle))
    }

    fn key(&self, handle: Handle) -> BlockKey {
        BlockKey {
            table: self.id,
            offset: handle.offset,
        }
    }

    /// A fault in the block at `offset`.
    pub(super) fn corrupt(&self, offset: u64, fault: BlockFault) -> SstableError {
        Corruption::new(&self.path, offset, fault.0).into()
    }
}

/// Opens a file that must be there at its full length.
fn open_file(vfs: &dyn Vfs, path: &Path, bytes: u64) -> Result<Arc<dyn VfsFile>, SstableError> {
    let file = vfs.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Corruption::new(path, 0, "the file is missing").into(),
        _ => SstableError::io("open", path, 0)(error),
    })?;
    let found = file.len().map_err(SstableError::io("measure", path, 0))?;
    if found != bytes || bytes < long(FOOTER_BYTES) {
        let fault = format!("the file has {found} bytes instead of {bytes}");
        return Err(Corruption::new(path, found.min(bytes), fault).into());
    }
    Ok(file)
}

fn decode_footer(bytes: &[u8], path: &Path, file_bytes: u64) -> Result<Footer, SstableError> {
    let offset = file_bytes.saturating_sub(long(FOOTER_BYTES));
    let fault = match bytes.first_chunk() {
        Some(bytes) => match Footer::decode(bytes, file_bytes) {
            Ok(footer) => return Ok(footer),
            Err(FooterFault::Damaged(fault)) => fault,
            Err(FooterFault::Newer(found)) => {
                return Err(SstableError::Newer {
                    path: path.to_owned(),
                    found,
                    supported: VERSION,
                });
            }
        },
        None => "the footer is cut off",
    };
    Err(Corruption::new(path, offset, fault).into())
}

/// The payload of a block, checked.
fn read_block(
    file: &dyn VfsFile,
    path: &Path,
    handle: Handle,
    salt: Salt,
) -> Result<Vec<u8>, SstableError> {
    let stored = read(file, path, handle.offset, handle.stored_bytes())?;
    open_block(stored, handle.offset, salt)
        .map_err(|fault| Corruption::new(path, handle.offset, fault).into())
}

/// Exactly `length` bytes, which the file was found to have.
fn read(
    file: &dyn VfsFile,
    path: &Path,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, SstableError> {
    let mut bytes = vec![0; length];
    let count =
        read_full(file, &mut bytes, offset).map_err(SstableError::io("read", path, offset))?;
    if count < length {
        let end = offset.saturating_add(long(count));
        return Err(Corruption::new(path, end, "the file ends within a block").into());
    }
    Ok(bytes)
}
