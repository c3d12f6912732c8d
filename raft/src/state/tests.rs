//! Keys and records have fixed bytes; reads see one database, in both directions, without the dead.

mod codecs;
mod reads;

use kelp_storage::WriteBatch;

use super::*;
use crate::model::*;
use crate::testing_state::keyspace;
