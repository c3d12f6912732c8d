//! Who decides: everything that touches openraft.
