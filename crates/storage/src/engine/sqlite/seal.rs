//! The checksum of a backup file, after its last page.
//!
//! SQLite's own check finds damaged structures, but no changed text. SQLite ignores bytes after the
//! last page, so a sealed file is a SQLite database as before.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::engine::error::{Cause, Error, Result};

/// The bytes before the checksum, XXH3 with 128 bits of all pages.
const MARK: &[u8; 16] = b"galley xxh3-128\n";

const CHECKSUM_SIZE: usize = 16;

const SEAL_SIZE: u64 = (MARK.len() + CHECKSUM_SIZE) as u64;

/// The size of the parts in which a file is read, in bytes.
const PART: usize = 256 * 1024;

/// Writes the checksum of a database that is closed. Replaces an earlier one.
pub(crate) fn seal(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let size = size_of_pages(&mut file)?;
    let checksum = checksum_of(&mut file, size)?;
    // The end of the last page, possibly with an earlier checksum after it.
    if ![size, size + SEAL_SIZE].contains(&file.metadata()?.len()) {
        return Err(io::Error::new(ErrorKind::InvalidData, "its header states another size"));
    }
    file.set_len(size)?;
    file.seek(SeekFrom::Start(size))?;
    file.write_all(MARK)?;
    file.write_all(&checksum)
}

/// Compares a file with its checksum. Returns false if it has none.
pub(crate) fn check(path: &Path) -> Result<bool> {
    let read = || {
        let mut file = File::open(path)?;
        let size = size_of_pages(&mut file)?;
        let mut end = Vec::new();
        file.seek(SeekFrom::Start(size))?;
        Read::take(&mut file, SEAL_SIZE + 1).read_to_end(&mut end)?;
        let Some(checksum) = end.strip_prefix(MARK) else { return Ok((false, true)) };
        Ok((true, checksum == checksum_of(&mut file, size)?))
    };
    match read().map_err(|error: io::Error| Error::Unavailable(Cause::new(error)))? {
        (_, false) => {
            Err(Error::corrupt("the file differs from its checksum: it is damaged or was changed"))
        }
        (is_sealed, true) => Ok(is_sealed),
    }
}

/// Returns the size of all pages, as the header states it.
fn size_of_pages(file: &mut File) -> io::Result<u64> {
    let mut header = [0; 32];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut header)?;
    // The largest size, 65,536, is stored as 1.
    let page_size = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        size => size,
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    Ok(page_size * u64::from(pages))
}

fn checksum_of(file: &mut File, size: u64) -> io::Result<[u8; CHECKSUM_SIZE]> {
    file.seek(SeekFrom::Start(0))?;
    let (mut hash, mut left) = (Xxh3::new(), size);
    let mut part = vec![0; PART];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(PART).min(PART);
        match file.read(&mut part[..wanted]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                hash.update(&part[..read]);
                left -= read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hash.digest128().to_le_bytes())
}
