//! The memory that the process may use.

use std::fs;
use std::path::Path;

/// The directory of the control groups.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Returns the machine's memory in bytes, or the limit of the process's control group if that is
/// lower, as in a container.
pub fn memory_limit() -> u64 {
    let machine = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "the type depends on the platform")]
    let units = u64::from(machine.totalram);
    let total = units.saturating_mul(u64::from(machine.mem_unit.max(1)));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limit_of_groups(Path::new(CONTROL_GROUPS), &groups).map_or(total, |limit| limit.min(total))
}

/// Returns the lowest limit of a process's control groups and the groups above them. `groups` is
/// the text of `/proc/<pid>/cgroup`, and `root` the directory of the control groups.
fn limit_of_groups(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let own = root.join(path.trim_start_matches('/'));
        // In a container the root is the process's own group, which the path may not name.
        let paths = own.ancestors().take_while(|path| path.starts_with(&root));
        paths.filter_map(|path| fs::read_to_string(path.join(file)).ok()?.trim().parse().ok()).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_the_control_groups_counts() {
        let root = std::env::temp_dir().join(format!("galley-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/memory.max", "2147483648\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "1073741824\n");
        let limit = |groups: &str| limit_of_groups(&root, groups);
        assert_eq!(limit("0::/a/b\n"), Some(2_147_483_648));
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit("0::/elsewhere\n"), None);
        assert_eq!(limit("5:cpu:/c\n4:cpuset,memory:/c\n0::/a\n"), Some(1_073_741_824));
        assert_eq!(limit("not a group"), None);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(memory_limit() > 1 << 20);
    }
}
