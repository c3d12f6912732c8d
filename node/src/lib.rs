//! The Kelp process: listeners, forwarding, peers, metrics and the command line.
