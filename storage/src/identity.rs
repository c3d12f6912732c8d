//! Who a directory is: the file IDENTITY.
//!
//! Sixteen random bytes, drawn once, salt every checksum of the database, so that a file of
//! another database is never taken for its own. A small opaque record, written once, binds the
//! directory to its embedder's owner. Format page: docs/formats/identity.md.

use std::fmt;
use std::path::Path;

use bytes::Bytes;
use kelp_seams::Rng;

use crate::codec::{Reader, long};
use crate::error::{Corruption, OpenError, StorageError};
use crate::vfs::{Vfs, read_full};

/// The name of the file.
pub(crate) const FILE_NAME: &str = "IDENTITY";
/// Where a new content is written before it takes the name.
pub(crate) const TEMPORARY_NAME: &str = "IDENTITY.new";

/// The longest owner record. It holds a few ids; a longer one is a mistake.
pub const OWNER_BYTES_MAX: usize = 1024;

const MAGIC: u32 = u32::from_le_bytes(*b"KIDE");
const VERSION: u16 = 1;
const FIXED_BYTES: usize = 4 + 2 + 2 + 16 + 4;

/// The random name of a database: of one data directory, for as long as that lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatabaseId([u8; 16]);

impl DatabaseId {
    pub(crate) fn random(rng: &dyn Rng) -> Self {
        let mut bytes = [0; 16];
        rng.fill(&mut bytes);
        Self(bytes)
    }

    /// Wraps the raw bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The content of IDENTITY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) database: DatabaseId,
    pub(crate) owner: Option<Bytes>,
}

/// Why bytes are not an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdentityFault {
    Newer(u16),
    Damaged,
}

impl Identity {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let owner = self.owner.as_deref().unwrap_or_default();
        let length = u16::try_from(owner.len()).expect("bind checks the owner's length");
        let mut bytes = Vec::with_capacity(FIXED_BYTES + owner.len());
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(self.database.as_bytes());
        bytes.extend_from_slice(owner);
        let check = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, IdentityFault> {
        let (content, check) = bytes.split_last_chunk().ok_or(IdentityFault::Damaged)?;
        if crc32fast::hash(content) != u32::from_le_bytes(*check) {
            return Err(IdentityFault::Damaged);
        }
        let mut reader = Reader::new(content);
        if reader.u32() != Some(MAGIC) {
            return Err(IdentityFault::Damaged);
        }
        match reader.u16().ok_or(IdentityFault::Damaged)? {
            VERSION => {}
            newer if newer > VERSION => return Err(IdentityFault::Newer(newer)),
            _ => return Err(IdentityFault::Damaged),
        }
        let owner_bytes = reader.u16().ok_or(IdentityFault::Damaged)?;
        let database = reader
            .array()
            .map(DatabaseId)
            .ok_or(IdentityFault::Damaged)?;
        let owner = reader.rest();
        if owner.len() != usize::from(owner_bytes) || owner.len() > OWNER_BYTES_MAX {
            return Err(IdentityFault::Damaged);
        }
        let owner = (!owner.is_empty()).then(|| Bytes::copy_from_slice(owner));
        Ok(Self { database, owner })
    }

    /// Reads IDENTITY of `directory`; none when there is none.
    pub(crate) fn load(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Self>, OpenError> {
        let path = directory.join(FILE_NAME);
        if !vfs
            .exists(&path)
            .map_err(OpenError::io("look for", &path))?
        {
            return Ok(None);
        }
        let bytes = read_small(vfs, &path).map_err(OpenError::io("read", &path))?;
        match Self::decode(&bytes) {
            Ok(identity) => Ok(Some(identity)),
            Err(IdentityFault::Newer(found)) => Err(OpenError::NewerFormat {
                path,
                found,
                supported: VERSION,
            }),
            Err(IdentityFault::Damaged) => {
                Err(Corruption::new(path, 0, "its checksum does not hold").into())
            }
        }
    }

    /// Writes IDENTITY: durable and whole when this returns, the old one or none before.
    pub(crate) fn store(&self, vfs: &dyn Vfs, directory: &Path) -> std::io::Result<()> {
        let temporary = directory.join(TEMPORARY_NAME);
        if vfs.exists(&temporary)? {
            vfs.remove(&temporary)?;
        }
        let file = vfs.create(&temporary)?;
        file.write_at(&self.encode(), 0)?;
        file.sync_all()?;
        vfs.rename(&temporary, &directory.join(FILE_NAME))?;
        vfs.sync_dir(directory)
    }
}

/// Binds `identity` to `owner`, once.
pub(crate) fn bind(
    identity: &mut Identity,
    owner: &[u8],
    vfs: &dyn Vfs,
    directory: &Path,
) -> Result<(), StorageError> {
    if owner.is_empty() || owner.len() > OWNER_BYTES_MAX {
        return Err(StorageError::TooLarge {
            what: "owner record",
            size: owner.len(),
            size_max: OWNER_BYTES_MAX,
        });
    }
    if let Some(found) = &identity.owner {
        if **found == *owner {
            return Ok(());
        }
        return Err(StorageError::OwnedByAnother {
            found: found.clone(),
        });
    }
    let bound = Identity {
        database: identity.database,
        owner: Some(Bytes::copy_from_slice(owner)),
    };
    bound.store(vfs, directory)?;
    *identity = bound;
    Ok(())
}

/// Reads a file that is a few kilobytes at most; of a longer one, enough to fail its checksum.
fn read_small(vfs: &dyn Vfs, path: &Path) -> std::io::Result<Vec<u8>> {
    let file = vfs.open(path)?;
    let length = file.len()?.min(long(FIXED_BYTES + OWNER_BYTES_MAX + 1));
    let mut bytes = vec![0; usize::try_from(length).expect("bounded just above")];
    let count = read_full(&*file, &mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
