//! Simulated and real clusters, nemeses and history checkers.
