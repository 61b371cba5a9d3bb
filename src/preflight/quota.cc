#include "preflight/quota.h"

#include <algorithm>
#include <sys/quota.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "base/shared_filesystem.h"
#include "preflight/quota_text.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

constexpr ByteCount kMaxOutput = 256_KiB;

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

// The mount of the folder.
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

// The group of new files in the folder.
gid_t group_in(const Path& folder) {
  struct stat about{};
  const bool is_set = ::stat(folder.c_str(), &about) == 0 && (about.st_mode & S_ISGID) != 0;
  return is_set ? about.st_gid : ::getegid();
}

struct ProgramOutput {
  std::string text;
  std::string error;
  bool is_missing = false;
};

// The output of the program, or a short error.
ProgramOutput run_quota_program(std::vector<std::string> argv, Deadline deadline) {
  const std::string name = argv.front().substr(argv.front().rfind('/') + 1);
  const auto output =
      run_program({.argv = std::move(argv), .environment = {}, .directory = {}}, deadline, kMaxOutput);
  if (output.ok()) {
    if (output->exit.ok() || !output->out.empty()) return {output->out, "", false};
    return {"", format("{}: {}", name, to_text(output->exit)), false};
  }
  const bool is_missing = output.status().code() == Code::not_found;
  return {"",
          is_missing                                ? format("{}: not found in PATH", name)
          : output.status().code() == Code::timeout ? format("{}: no answer in time", name)
                                                    : format("{}: does not start", name),
          is_missing};
}

QuotaResult gpfs_quota(const QuotaTarget& target, Deadline deadline) {
  constexpr std::string_view kInstalled = "/usr/lpp/mmfs/bin/mmlsquota";  // rarely in PATH
  const std::string program = path_exists(kInstalled) ? std::string(kInstalled) : "mmlsquota";
  std::string device = target.device.starts_with("/dev/") ? target.device.substr(5) : target.device;
  std::vector<std::string> argv = {program, "-Y"};
  if (!device.empty() && !device.starts_with('-')) argv.push_back(device);
  const ProgramOutput output = run_quota_program(std::move(argv), deadline);
  return {parse_gpfs_quota(output.text, target), output.error};
}

// BeeGFS 7 has beegfs-ctl, 8 has beegfs; with both, the older one may be a remnant.
QuotaResult beegfs_quota(const QuotaTarget& target, Deadline deadline) {
  const ProgramOutput newer =
      run_quota_program({"beegfs", "quota", "list-usage", "--raw", "--output", "ndjson"}, deadline);
  if (const auto quota = parse_beegfs_lines(newer.text, target)) return {quota, ""};
  const ProgramOutput user = run_quota_program(
      {"beegfs-ctl", "--getquota", "--csv", "--uid", std::to_string(target.user)}, deadline);
  std::optional<Quota> quota = parse_beegfs_csv(user.text, target.user);
  if (user.error.empty()) {
    const ProgramOutput group = run_quota_program(
        {"beegfs-ctl", "--getquota", "--csv", "--gid", std::to_string(target.group)}, deadline);
    quota = tighter_quota(quota, parse_beegfs_csv(group.text, target.group));
    return {quota, quota ? "" : group.error};
  }
  return {quota, newer.is_missing ? user.error : newer.error};
}

}  // namespace

std::optional<Quota> parse_quota(std::string_view text) {
  std::vector<std::string_view> before;
  for (std::string_view line : split(text, '\n')) {
    auto columns = columns_of(line);
    // A long name is on a separate line.
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
  STOKER_ASSIGN_OR_RETURN(name, shared_filesystem_at(folder));
  if (name == "Lustre") return Filesystem::lustre;
  if (name == "NFS") return Filesystem::nfs;
  if (name == "GPFS") return Filesystem::gpfs;
  return name == "BeeGFS" ? Filesystem::beegfs : Filesystem::other;
}

QuotaResult query_quota(Filesystem kind, const Path& folder, Deadline deadline) {
  if (kind == Filesystem::other) return {kernel_quota(folder), ""};
  const QuotaTarget target{
      .user = ::getuid(), .group = group_in(folder), .device = mount_of(folder).device, .folder = folder};
  if (kind == Filesystem::gpfs) return gpfs_quota(target, deadline);
  if (kind == Filesystem::beegfs) return beegfs_quota(target, deadline);
  const ProgramOutput output =
      kind == Filesystem::lustre
          ? run_quota_program({"lfs", "quota", "-q", "-u", std::to_string(target.user), folder.string()},
                              deadline)
          : run_quota_program({"quota", "-w", "-p", "-f", folder.string()}, deadline);
  // Few NFS servers report quotas; no output is no error.
  return {parse_quota(output.text), kind == Filesystem::nfs ? "" : output.error};
}

}  // namespace stoker::preflight
