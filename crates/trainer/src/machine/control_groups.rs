//! The memory that Linux' control groups leave a process: cgroups(7), both versions, whatever is mounted where.
//!
//! A limit holds for everything below its group, so the smallest on the way up counts. What a group's files take of its memory
//! is given back when it is needed.

/// A hierarchy of groups that may limit memory.
struct Version {
    /// The type of its file system.
    kind: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// In `memory.stat`: the bytes of files.
    files: [&'static str; 2],
}

const VERSIONS: [Version; 2] = [
    Version {
        kind: "cgroup",
        limit: "memory.limit_in_bytes",
        usage: "memory.usage_in_bytes",
        files: ["total_inactive_file", "total_active_file"],
    },
    Version { kind: "cgroup2", limit: "memory.max", usage: "memory.current", files: ["inactive_file", "active_file"] },
];

/// Bytes that the groups of this process leave it, by the files that `read` gives; `None` without a limit.
pub(crate) fn available(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let groups = read("/proc/self/cgroup")?;
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts.lines().filter_map(Mount::parse);
    let of_mount = |mount: Mount| {
        let version = VERSIONS.iter().find(|version| version.kind == mount.kind)?;
        let group = groups.lines().find_map(|line| group_of(line, version))?;
        mount.folders(group).iter().filter_map(|folder| left(folder, version, read)).min()
    };
    mounts.filter_map(of_mount).min()
}

/// The path in a line of `/proc/self/cgroup`, `number:controllers:path`, where it is of the hierarchy that limits memory.
fn group_of<'a>(line: &'a str, version: &Version) -> Option<&'a str> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let is_it = match version.kind {
        "cgroup2" => controllers.is_empty(),
        _ => controllers.split(',').any(|controller| controller == "memory"),
    };
    is_it.then_some(path)
}

/// What a group and its limit leave.
fn left(folder: &str, version: &Version, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |name: &str| read(&format!("{folder}/{name}"))?.trim().parse::<u64>().ok();
    let (most, now) = (number(version.limit)?, number(version.usage).unwrap_or(0));
    let statistics = read(&format!("{folder}/memory.stat")).unwrap_or_default();
    let files = version.files.iter().filter_map(|name| number_after(&statistics, &format!("{name} ")));
    let files = files.fold(0, u64::saturating_add);
    Some(most.saturating_sub(now.saturating_sub(files)))
}

/// A mounted file system of groups: a line of `/proc/self/mountinfo`.
struct Mount {
    /// The group that is its root.
    root: String,
    point: String,
    kind: String,
}

impl Mount {
    /// `id parent device root point options [tags] - type source options`; `None` for what holds no groups that limit memory.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3).map(unescaped);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?.to_string(), after.nth(1)?);
        let limits_memory =
            kind == "cgroup2" || kind == "cgroup" && options.split(',').any(|option| option == "memory");
        limits_memory.then_some(Self { root, point, kind })
    }

    /// Where a group's files are, and those of every group above it that is mounted.
    fn folders(&self, group: &str) -> Vec<String> {
        // Of a group that lies outside what is mounted, the root of that is the nearest that can be seen.
        let below = match self.root.as_str() {
            "/" => group,
            root => group.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(""),
        };
        let mut folder = self.point.trim_end_matches('/').to_string();
        let mut folders = vec![folder.clone()];
        for name in below.split('/').filter(|name| !name.is_empty() && *name != "..") {
            folder = format!("{folder}/{name}");
            folders.push(folder.clone());
        }
        folders
    }
}

/// A path of mountinfo, in which spaces, tabs, line ends and backslashes stand as octal numbers.
fn unescaped(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_string(), |path, (code, character)| path.replace(code, character))
}

/// The number that follows a line's first words.
pub(super) fn number_after(text: &str, words: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(words))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn available_of(files: &[(&str, &str)]) -> Option<u64> {
        let read = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| text.to_string());
        available(&read)
    }

    const UNIFIED: (&str, &str) = (
        "/proc/self/mountinfo",
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
    );

    /// kin#1095: a job's group has no files at the root of the mount, and its limit was not seen.
    #[test]
    fn kin_1095_the_smallest_limit_on_the_way_up_counts() {
        let mut files = vec![
            UNIFIED,
            ("/proc/self/cgroup", "0::/slurm/job_7/step_0\n"),
            ("/sys/fs/cgroup/slurm/job_7/memory.max", "62914560\n"),
            ("/sys/fs/cgroup/slurm/job_7/memory.current", "20971520\n"),
            ("/sys/fs/cgroup/slurm/job_7/memory.stat", "anon 4096\ninactive_file 10485760\nactive_file 0\n"),
            ("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n"),
            ("/sys/fs/cgroup/slurm/job_7/step_0/memory.current", "20971520\n"),
            ("/sys/fs/cgroup/slurm/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/slurm/memory.current", "0\n"),
        ];
        assert_eq!(available_of(&files), Some(50 * MIB), "60 less the 20 in use, of which files take 10");
        files.push(("/sys/fs/cgroup/memory.max", "41943040"));
        assert_eq!(available_of(&files), Some(40 * MIB));
        assert_eq!(available_of(&files[..2]), None);
    }

    /// kin#1095: version 1, where what is mounted begins at a container's own group, and beside an empty version 2.
    #[test]
    fn kin_1095_version_1_is_seen() {
        let hybrid = "31 22 0:27 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            32 22 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
            33 22 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let files = [
            ("/proc/self/mountinfo", hybrid),
            ("/proc/self/cgroup", "5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab/job\n0::/docker/ab\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n"),
            ("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "62914560\n"),
            ("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "31457280\n"),
            ("/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 999\ntotal_inactive_file 1048576\n"),
        ];
        assert_eq!(available_of(&files), Some(31 * MIB));
    }

    #[test]
    fn groups_outside_the_mount_and_odd_lines_are_no_failure() {
        let root = [UNIFIED, ("/proc/self/cgroup", "0::/../../other\n"), ("/sys/fs/cgroup/memory.max", "1048576\n")];
        assert_eq!(available_of(&root), Some(MIB));
        for (mounts, groups) in [("", ""), ("a b - c\n- - -\n", ":\n::\nx\n0::/\n"), (UNIFIED.1, "1:name=systemd:/\n")]
        {
            assert_eq!(available_of(&[("/proc/self/mountinfo", mounts), ("/proc/self/cgroup", groups)]), None);
        }
        let spaced = "30 22 0:26 / /my\\040groups rw - cgroup2 none rw\n";
        let files =
            [("/proc/self/mountinfo", spaced), ("/proc/self/cgroup", "0::/a\n"), ("/my groups/a/memory.max", "5\n")];
        assert_eq!(available_of(&files), Some(5));
    }
}
