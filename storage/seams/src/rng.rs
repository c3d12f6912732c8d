//! Randomness as a value that is handed in.

use std::fs::File;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The only source of randomness.
pub trait Rng: Send + Sync + 'static {
    /// Sixty-four random bits.
    fn next_u64(&self) -> u64;

    /// Fills `out` with random bytes.
    fn fill(&self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// The operating system's generator, fit for identities and keys.
#[derive(Debug)]
pub struct OsRng {
    device: Mutex<File>,
}

impl OsRng {
    /// Opens the generator.
    ///
    /// # Errors
    /// The system has no readable `/dev/urandom`; a process cannot make identities without it.
    #[expect(clippy::disallowed_methods, reason = "this is the randomness seam")]
    pub fn open() -> std::io::Result<Self> {
        Ok(Self {
            device: Mutex::new(File::open("/dev/urandom")?),
        })
    }
}

impl Rng for OsRng {
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// # Panics
    /// When the opened generator stops giving bytes, which Linux rules out.
    fn fill(&self, out: &mut [u8]) {
        let mut device = self
            .device
            .lock()
            .expect("no holder panics before it has read");
        device
            .read_exact(out)
            .expect("an opened urandom device always gives bytes");
    }
}

/// A reproducible generator (`SplitMix64`): equal seeds give equal streams.
#[derive(Debug)]
pub struct SeededRng {
    state: AtomicU64,
}

impl SeededRng {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    /// The stream of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self {
            state: AtomicU64::new(seed),
        }
    }
}

impl Rng for SeededRng {
    fn next_u64(&self) -> u64 {
        let state = self
            .state
            .fetch_add(Self::STEP, Ordering::SeqCst)
            .wrapping_add(Self::STEP);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests;
