//! A reader that computes the SHA-256 of its bytes.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// A reader that computes the SHA-256 of the bytes that are read.
#[derive(Debug)]
pub struct HashingReader<R> {
    reader: R,
    hash: Sha256,
}

impl<R> HashingReader<R> {
    /// Wraps a reader.
    pub fn new(reader: R) -> Self {
        Self { reader, hash: Sha256::new() }
    }

    /// Returns the SHA-256 of the bytes so far.
    pub fn into_sha256(self) -> [u8; 32] {
        self.hash.finalize().into()
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(into)?;
        self.hash.update(&into[..read]);
        Ok(read)
    }
}
