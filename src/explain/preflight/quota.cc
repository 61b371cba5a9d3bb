#include "explain/preflight/quota.h"

#include <algorithm>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "explain/preflight/quota_text.h"

namespace stoker::explain {
namespace {

constexpr long kLustre = 0x0BD00BD0;
constexpr long kNfs = 0x6969;
constexpr long kGpfs = 0x47504653;
constexpr long kBeegfs = 0x19830326;
constexpr ByteCount kMostSaid = 256_KiB;

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (std::string_view piece : split(line, ' ')) {
    if (!trim(piece).empty()) columns.push_back(trim(piece));
  }
  return columns;
}

struct Mount {
  std::string device;
  std::string point;
};

// What the folder is mounted from.
Mount mount_of(const Path& folder) {
  const auto mounts = read_pseudo_file("/proc/self/mounts");
  Mount found;
  if (!mounts.ok()) return found;
  const std::string path = folder.string();
  for (std::string_view line : split(*mounts, '\n')) {
    const auto columns = columns_of(line);
    if (columns.size() < 2) continue;
    const std::string_view point = columns[1];
    const bool holds =
        path.starts_with(point) && (point == "/" || path.size() == point.size() || path[point.size()] == '/');
    if (holds && point.size() >= found.point.size()) found = {std::string(columns[0]), std::string(point)};
  }
  return found;
}

std::optional<Quota> kernel_quota(const Path& folder) {
  const std::string device = mount_of(folder).device;
  struct dqblk block{};
  if (!device.starts_with("/dev/") ||
      ::quotactl(QCMD(Q_GETQUOTA, USRQUOTA), device.c_str(), static_cast<int>(::getuid()),
                 reinterpret_cast<caddr_t>(&block)) != 0)
    return std::nullopt;
  return quota_of({block.dqb_curspace, block.dqb_bsoftlimit, block.dqb_bhardlimit},
                  {block.dqb_curinodes, block.dqb_isoftlimit, block.dqb_ihardlimit});
}

// The group that files made in the folder get.
gid_t group_in(const Path& folder) {
  struct stat about{};
  const bool is_set = ::stat(folder.c_str(), &about) == 0 && (about.st_mode & S_ISGID) != 0;
  return is_set ? about.st_gid : ::getegid();
}

struct Printed {
  std::string text;
  std::string trouble;
  bool is_missing = false;
};

// What the program printed, or in a few words why it printed nothing.
Printed said_by(std::vector<std::string> argv, Deadline deadline) {
  const std::string name = argv.front().substr(argv.front().rfind('/') + 1);
  const auto said =
      run_program({.argv = std::move(argv), .environment = {}, .directory = {}}, deadline, kMostSaid);
  if (said.ok()) {
    if (said->exit.ok() || !said->out.empty()) return {said->out, "", false};
    return {"", format("{}: {}", name, to_text(said->exit)), false};
  }
  const bool is_missing = said.status().code() == Code::not_found;
  return {"",
          is_missing                              ? format("{}: not found in PATH", name)
          : said.status().code() == Code::timeout ? format("{}: no answer in time", name)
                                                  : format("{}: does not start", name),
          is_missing};
}

QuotaAnswer gpfs_quota(const QuotaOf& of, Deadline deadline) {
  constexpr std::string_view kInstalled = "/usr/lpp/mmfs/bin/mmlsquota";  // seldom in PATH
  const std::string program = path_exists(kInstalled) ? std::string(kInstalled) : "mmlsquota";
  std::string device = of.device.starts_with("/dev/") ? of.device.substr(5) : of.device;
  std::vector<std::string> argv = {program, "-Y"};
  if (!device.empty() && !device.starts_with('-')) argv.push_back(device);
  const Printed said = said_by(std::move(argv), deadline);
  return {parse_gpfs_quota(said.text, of), said.trouble};
}

// BeeGFS 7 by beegfs-ctl, 8 by beegfs; where both are, the older one may be a remnant.
QuotaAnswer beegfs_quota(const QuotaOf& of, Deadline deadline) {
  const Printed newer = said_by({"beegfs", "quota", "list-usage", "--raw", "--output", "ndjson"}, deadline);
  if (const auto quota = parse_beegfs_lines(newer.text, of)) return {quota, ""};
  const Printed user =
      said_by({"beegfs-ctl", "--getquota", "--csv", "--uid", std::to_string(of.user)}, deadline);
  std::optional<Quota> quota = parse_beegfs_csv(user.text, of.user);
  if (user.trouble.empty()) {
    const Printed group =
        said_by({"beegfs-ctl", "--getquota", "--csv", "--gid", std::to_string(of.group)}, deadline);
    quota = lesser_of(quota, parse_beegfs_csv(group.text, of.group));
    return {quota, quota ? "" : group.trouble};
  }
  return {quota, newer.is_missing ? user.trouble : newer.trouble};
}

}  // namespace

std::optional<Quota> parse_quota(std::string_view text) {
  std::vector<std::string_view> before;
  for (std::string_view line : split(text, '\n')) {
    auto columns = columns_of(line);
    // A long name stands on a line of its own.
    if (before.size() == 1) columns.insert(columns.begin(), before.front());
    before = columns;
    if (columns.size() < 8) continue;
    // A filesystem, then used, soft, hard and grace of bytes, and the same of files.
    std::uint64_t numbers[6] = {};
    constexpr std::size_t kPlaces[] = {1, 2, 3, 5, 6, 7};
    bool is_row = true;
    for (std::size_t i = 0; i < std::size(kPlaces); ++i)
      is_row = is_row && read_amount(columns[kPlaces[i]], &numbers[i]);
    if (is_row)
      return quota_of({numbers[0] * kQuotaBlock, numbers[1], numbers[2]},
                      {numbers[3], numbers[4], numbers[5]});
  }
  return std::nullopt;
}

Result<Filesystem> filesystem_of(const Path& folder) {
  struct statfs about{};
  if (::statfs(folder.c_str(), &about) != 0) return posix_error(printable(folder.string()), errno);
  if (about.f_type == kLustre) return Filesystem::lustre;
  if (about.f_type == kNfs) return Filesystem::nfs;
  if (about.f_type == kGpfs) return Filesystem::gpfs;
  return about.f_type == kBeegfs ? Filesystem::beegfs : Filesystem::other;
}

QuotaAnswer ask_quota(Filesystem kind, const Path& folder, Deadline deadline) {
  if (kind == Filesystem::other) return {kernel_quota(folder), ""};
  const QuotaOf of{
      .user = ::getuid(), .group = group_in(folder), .device = mount_of(folder).device, .folder = folder};
  if (kind == Filesystem::gpfs) return gpfs_quota(of, deadline);
  if (kind == Filesystem::beegfs) return beegfs_quota(of, deadline);
  const Printed said =
      kind == Filesystem::lustre
          ? said_by({"lfs", "quota", "-q", "-u", std::to_string(of.user), folder.string()}, deadline)
          : said_by({"quota", "-w", "-p", "-f", folder.string()}, deadline);
  // Of NFS few servers tell quotas, and their silence says nothing.
  return {parse_quota(said.text), kind == Filesystem::nfs ? "" : said.trouble};
}

}  // namespace stoker::explain
