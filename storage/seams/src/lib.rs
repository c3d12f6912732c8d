//! The doors through which time, randomness and background work enter Kelp.
