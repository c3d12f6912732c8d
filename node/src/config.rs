//! The options of a node: what they are called, where their values come from, and what values make
//! sense.
//!
//! One table ([`OPTIONS`]) names every option once; the flags of `kelp start`, the `KELP_*`
//! environment and the keys of the TOML file are derived from it, so that the three never drift
//! apart. [`layers`] merges flags over environment over file over defaults and remembers where each
//! value came from; [`settings`] turns the merged text into typed, checked values and lists *all*
//! problems at once. Nothing here opens a socket or a data directory.

pub mod layers;
pub mod members;
pub mod options;
pub mod quantity;
pub mod settings;

pub use layers::{Layers, Merged, Origin, Value};
pub use members::MemberSettings;
pub use options::{OPTIONS, OptionSpec};
pub use settings::{NodeSettings, Problem, Problems};
