//! The log of table sets: which tables each keyspace consists of, after every change.
//!
//! A manifest begins with the whole state and goes on with one frame per edit, each durable before
//! the next is written. CURRENT names the manifest that counts. When edits have grown as long as
//! they may, or after a failed write or sync, a new manifest is written whole and CURRENT turned to
//! it. Only the last frame may be torn, and only in the way in which a crash tears; everything
//! else that does not match is corruption. Format page: docs/formats/manifest.md.

mod current;
mod edit;
pub(crate) mod frame;
mod read;
mod table_record;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use current::{FILE_NAME as CURRENT_NAME, TEMPORARY_NAME as CURRENT_TEMPORARY_NAME};
#[cfg(test)]
pub(crate) use edit::decode as decode_edit;
pub(crate) use edit::{Edit, NAME_BYTES_MAX, Record};
pub(crate) use read::{Loaded, load};
pub(crate) use table_record::{decode_table, encode_table};
pub(crate) use writer::{AppendError, ManifestCounters, ManifestWriter};
