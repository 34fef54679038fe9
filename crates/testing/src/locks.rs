//! File locks of processes, read from the kernel's list.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns true if a process holds a POSIX lock on a file. SQLite takes locks of this kind.
pub fn are_held(process: u32, file: &Path) -> bool {
    let metadata = std::fs::metadata(file).expect("the file is there");
    let (device, inode) = (metadata.dev(), metadata.ino());
    let (major, minor) = (major(device), minor(device));
    let id = format!("{major:02x}:{minor:02x}:{inode}");
    let process = process.to_string();
    let listed = std::fs::read_to_string("/proc/locks").expect("the kernel lists locks");
    listed.lines().any(|line| {
        // `1: POSIX  ADVISORY  READ 4711 fe:00:1234 124 128`
        let mut columns = line.split_whitespace().skip(1);
        columns.next() == Some("POSIX")
            && columns.nth(2) == Some(&process)
            && columns.next() == Some(&id)
    })
}

/// Returns the major number of a device number, in glibc's encoding.
fn major(device: u64) -> u64 {
    ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff)
}

fn minor(device: u64) -> u64 {
    (device & 0xff) | ((device >> 12) & !0xff)
}
