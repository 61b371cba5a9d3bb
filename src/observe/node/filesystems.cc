#include "observe/node/filesystems.h"

#include <algorithm>
#include <set>

#include "base/file.h"

namespace stoker::observe {

namespace {

constexpr std::string_view kSharedKinds[] = {
    "lustre", "gpfs", "beegfs", "beegfs_nodev", "ceph", "panfs",    "wekafs", "orangefs", "pvfs2",
    "afs",    "cifs", "smb3",   "glusterfs",    "9p",   "virtiofs", "daos",   "cvmfs2"};
// FUSE filesystems of one machine only.
constexpr std::string_view kLocalFuse[] = {"fuse.lxcfs",      "fuse.portal",        "fuse.gvfsd-fuse",
                                           "fuse.squashfuse", "fuse.squashfuse_ll", "fuse.fuse-overlayfs"};
// A Lustre client has its counters in one of these; the last one is for root.
constexpr std::string_view kLustreFolders[] = {"fs/lustre/llite", "kernel/debug/lustre/llite"};

template <std::size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// mountinfo encodes blanks and backslashes of names in octal: "\040".
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    bool is_octal = text[i] == '\\' && i + 3 < text.size();
    for (std::size_t k = 1; is_octal && k <= 3; ++k) {
      is_octal = text[i + k] >= '0' && text[i + k] <= '7';
      code = code * 8 + (text[i + k] - '0');
    }
    plain += is_octal && code < 256 ? static_cast<char>(code) : text[i];
    if (is_octal && code < 256) i += 3;
  }
  return plain;
}

std::vector<Path> find_lustre(const NodeRoots& roots) {
  std::vector<Path> found;
  for (const Path& root : {roots.proc, roots.sys}) {
    for (std::string_view folder : kLustreFolders) {
      for (const std::string& name : names_in(root / folder)) {
        const Path stats = root / folder / name / "stats";
        if (read_pseudo_file(stats).ok()) found.push_back(stats);
      }
      if (!found.empty()) return found;
    }
  }
  return found;
}

/// Disks, without devices that are made of other disks or of memory.
std::vector<std::string> find_disks(const Path& blocks) {
  std::vector<std::string> disks;
  for (const std::string& name : names_in(blocks)) {
    const bool is_stacked =
        std::ranges::any_of(std::initializer_list<std::string_view>{"loop", "ram", "zram", "dm-", "md", "sr"},
                            [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (!is_stacked) disks.push_back(name);
  }
  return disks;
}

}  // namespace

std::vector<MountedFilesystem> parse_mounts(std::string_view mountinfo) {
  std::vector<MountedFilesystem> mounts;
  for (std::string_view line : split(mountinfo, '\n')) {
    const auto words = words_of(line);
    // Optional fields end with a single dash.
    const auto dash = std::find(words.begin(), words.end(), "-");
    const auto left = static_cast<std::size_t>(words.end() - dash);
    if (words.size() < 7 || dash - words.begin() < 6 || left < 3) continue;
    mounts.push_back({.device = std::string(words[2]),
                      .point = decoded(words[4]),
                      .kind = std::string(dash[1]),
                      .source = decoded(dash[2])});
  }
  return mounts;
}

bool is_shared_kind(std::string_view kind) {
  if (kind.starts_with("fuse.")) return !contains(kLocalFuse, kind);
  return kind == "nfs" || kind == "nfs4" || contains(kSharedKinds, kind);
}

FilesystemUse& FilesystemUse::operator+=(const FilesystemUse& other) {
  read_bytes = sum_of(read_bytes, other.read_bytes);
  write_bytes = sum_of(write_bytes, other.write_bytes);
  opens = sum_of(opens, other.opens);
  return *this;
}

// "read_bytes 12 samples [bytes] 1 4096 49152 ...": count, then least, most and sum of the values. Lines with
// a different unit count something else. Lustre lists what has happened: without a line there was nothing.
FilesystemUse parse_lustre_stats(std::string_view stats) {
  FilesystemUse use;
  if (!stats.starts_with("snapshot_time")) return use;
  use = {.read_bytes = 0, .write_bytes = 0, .opens = 0};
  for (std::string_view line : split(stats, '\n')) {
    const auto words = words_of(line);
    if (words.size() < 4 || words[2] != "samples") continue;
    const bool has_bytes = words.size() >= 7 && words[3] == "[bytes]";
    if (words[0] == "read_bytes") use.read_bytes = has_bytes ? leading_number(words[6]) : std::nullopt;
    if (words[0] == "write_bytes") use.write_bytes = has_bytes ? leading_number(words[6]) : std::nullopt;
    if (words[0] == "open") use.opens = leading_number(words[1]);
  }
  return use;
}

FilesystemUse parse_nfs_stats(std::string_view mountstats, const std::vector<MountedFilesystem>& mounts) {
  constexpr std::string_view kMountedOn = " mounted on ";
  constexpr std::string_view kWithType = " with fstype ";
  FilesystemUse sum;
  std::set<std::string> seen;
  bool is_counted = false;
  for (std::string_view line : split(mountstats, '\n')) {
    if (line.starts_with("device ")) {
      const std::size_t on = line.find(kMountedOn);
      const std::size_t type = line.find(kWithType);
      is_counted = on != std::string_view::npos && type != std::string_view::npos && on < type &&
                   line.substr(type + kWithType.size()).starts_with("nfs");
      if (!is_counted) continue;
      const std::size_t begin = on + kMountedOn.size();
      const std::string point = decoded(line.substr(begin, type - begin));
      // The last mount on a point hides those below it.
      const auto mount = std::find_if(mounts.rbegin(), mounts.rend(),
                                      [&](const MountedFilesystem& each) { return each.point == point; });
      is_counted = seen.insert(mount == mounts.rend() ? point : mount->device).second;
      continue;
    }
    if (!is_counted) continue;
    const auto words = words_of(line);
    if (words.size() >= 7 && words[0] == "bytes:")
      sum += {.read_bytes = leading_number(words[5]), .write_bytes = leading_number(words[6]), .opens = {}};
    if (words.size() >= 2 && (words[0] == "OPEN:" || words[0] == "OPEN_NOATTR:"))
      sum.opens = sum_of(sum.opens, leading_number(words[1]));
  }
  return sum;
}

FilesystemUse parse_disk_stats(std::string_view diskstats, const std::vector<std::string>& disks) {
  constexpr std::uint64_t kSector = 512;  // of this file, whatever the disk has
  const auto bytes = [](std::string_view word) -> Counter {
    const Counter sectors = leading_number(word);
    if (!sectors || *sectors > UINT64_MAX / kSector) return std::nullopt;
    return *sectors * kSector;
  };
  FilesystemUse sum;
  for (std::string_view line : split(diskstats, '\n')) {
    const auto words = words_of(line);
    if (words.size() < 10 || std::find(disks.begin(), disks.end(), words[2]) == disks.end()) continue;
    sum += {.read_bytes = bytes(words[5]), .write_bytes = bytes(words[9]), .opens = {}};
  }
  return sum;
}

FilesystemReader FilesystemReader::find(const NodeRoots& roots) {
  FilesystemReader reader;
  reader.proc_ = roots.proc;
  reader.lustre_ = find_lustre(roots);
  reader.disks_ = find_disks(roots.sys / "block");
  if (const auto text = read_pseudo_file(roots.proc / "self/mountinfo"); text.ok())
    reader.mounts_ = parse_mounts(*text);
  const bool has_mountstats = read_pseudo_file(roots.proc / "self/mountstats").ok();
  std::set<std::string> listed;
  for (const MountedFilesystem& mount : reader.mounts_) {
    if (!is_shared_kind(mount.kind) || !listed.insert(mount.device).second) continue;
    const bool is_nfs = mount.kind.starts_with("nfs");
    const bool is_counted = is_nfs ? has_mountstats : mount.kind == "lustre" && !reader.lustre_.empty();
    if (is_nfs) reader.has_nfs_ = has_mountstats;
    std::string& list = is_counted ? reader.counted_ : reader.uncounted_;
    list += format("{}{} {}", list.empty() ? "" : ", ", mount.kind, printable(mount.point));
  }
  return reader;
}

FilesystemUse FilesystemReader::shared() const {
  FilesystemUse sum;
  for (const Path& file : lustre_) {
    if (const auto stats = read_pseudo_file(file); stats.ok()) sum += parse_lustre_stats(*stats);
  }
  if (!has_nfs_) return sum;
  if (const auto stats = read_pseudo_file(proc_ / "self/mountstats"); stats.ok())
    sum += parse_nfs_stats(*stats, mounts_);
  return sum;
}

FilesystemUse FilesystemReader::local() const {
  const auto stats = read_pseudo_file(proc_ / "diskstats");
  return stats.ok() ? parse_disk_stats(*stats, disks_) : FilesystemUse();
}

}  // namespace stoker::observe
