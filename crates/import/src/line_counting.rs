//! A reader that counts lines, for error messages.

use std::io::BufRead;

use memchr::memchr_iter;

/// A reader that counts lines.
pub(crate) struct LineCountingReader<R> {
    inner: R,
    pub(crate) line: usize,
}

impl<R> LineCountingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, line: 1 }
    }
}

impl<R: BufRead> std::io::Read for LineCountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.line += memchr_iter(b'\n', &buffer[..count]).count();
        Ok(count)
    }
}

impl<R: BufRead> BufRead for LineCountingReader<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Ok(bytes) = self.inner.fill_buf() {
            let amount = amount.min(bytes.len());
            self.line += memchr_iter(b'\n', &bytes[..amount]).count();
        }
        self.inner.consume(amount);
    }
}
