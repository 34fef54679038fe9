//! File locks of processes, read from the kernel's lists.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns true if a process holds a POSIX lock on a file. SQLite takes locks of this kind.
///
/// The list of a descriptor is read at once. `/proc/locks` is read in parts, and lacks an entry if
/// other processes release locks in between.
pub fn are_held(process: u32, file: &Path) -> bool {
    let metadata = fs::metadata(file).expect("the file is there");
    let (device, inode) = (metadata.dev(), metadata.ino());
    let (major, minor) = (major(device), minor(device));
    let id = format!("{major:02x}:{minor:02x}:{inode}");
    let descriptors = fs::read_dir(format!("/proc/{process}/fdinfo"));
    let descriptors = descriptors.expect("the process runs").filter_map(Result::ok);
    // A descriptor may be closed meanwhile.
    let mut listed = descriptors.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    listed.any(|listed| {
        listed.lines().any(|line| {
            // `lock:   1: POSIX  ADVISORY  READ 4711 fe:00:1234 124 128`
            let mut columns = line.split_whitespace();
            columns.next() == Some("lock:")
                && columns.nth(1) == Some("POSIX")
                && columns.nth(3) == Some(&id)
        })
    })
}

/// Returns the major number of a device number, in glibc's encoding.
fn major(device: u64) -> u64 {
    ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff)
}

fn minor(device: u64) -> u64 {
    (device & 0xff) | ((device >> 12) & !0xff)
}
