//! Where bytes rest: the storage engine of Kelp.
