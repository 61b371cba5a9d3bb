#include "explain/preflight/room.h"

#include <algorithm>
#include <sys/quota.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"

namespace stoker::explain {
namespace {

constexpr long kLustre = 0x0BD00BD0;
constexpr long kNfs = 0x6969;
constexpr std::uint64_t kBlock = 1024;  // of both programs, and of the kernel's limits

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (std::string_view piece : split(line, ' ')) {
    if (!trim(piece).empty()) columns.push_back(trim(piece));
  }
  return columns;
}

// "1234*" stands for over the limit.
bool read_amount(std::string_view text, std::uint64_t* amount) {
  if (text.ends_with('*')) text.remove_suffix(1);
  return parse_number(text, amount) && *amount < (std::uint64_t{1} << 53);
}

std::optional<std::uint64_t> lower_limit(std::uint64_t soft, std::uint64_t hard) {
  if (soft == 0 && hard == 0) return std::nullopt;
  return soft == 0 ? hard : hard == 0 ? soft : std::min(soft, hard);
}

// What somebody uses, and the limits of it.
struct Use {
  std::uint64_t used = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

// `blocks.used` in bytes, its limits in blocks.
Quota quota_of(const Use& blocks, const Use& files) {
  Quota quota{.used = {blocks.used},
              .most = {},
              .files = files.used,
              .most_files = lower_limit(files.soft, files.hard)};
  if (const auto most = lower_limit(blocks.soft, blocks.hard)) quota.most = ByteCount{*most * kBlock};
  return quota;
}

// The device of the folder's filesystem, as quotactl wants it; "" for one that has none.
std::string device_of(const Path& folder) {
  const auto mounts = read_pseudo_file("/proc/self/mounts");
  if (!mounts.ok()) return "";
  std::string device;
  std::size_t longest = 0;
  for (std::string_view line : split(*mounts, '\n')) {
    const auto columns = columns_of(line);
    if (columns.size() < 2 || !columns[0].starts_with("/dev/")) continue;
    const std::string_view point = columns[1];
    const std::string path = folder.string();
    const bool holds =
        path.starts_with(point) && (point == "/" || path.size() == point.size() || path[point.size()] == '/');
    if (holds && point.size() >= longest) {
      longest = point.size();
      device = columns[0];
    }
  }
  return device;
}

std::optional<Quota> kernel_quota(const Path& folder) {
  const std::string device = device_of(folder);
  struct dqblk block{};
  if (device.empty() || ::quotactl(QCMD(Q_GETQUOTA, USRQUOTA), device.c_str(), static_cast<int>(::getuid()),
                                   reinterpret_cast<caddr_t>(&block)) != 0)
    return std::nullopt;
  return quota_of({block.dqb_curspace, block.dqb_bsoftlimit, block.dqb_bhardlimit},
                  {block.dqb_curinodes, block.dqb_isoftlimit, block.dqb_ihardlimit});
}

std::optional<Quota> asked_quota(std::vector<std::string> argv, Deadline deadline) {
  const auto said =
      run_program({.argv = std::move(argv), .environment = {}, .directory = {}}, deadline, 64_KiB);
  return said.ok() ? parse_quota(said->out) : std::nullopt;
}

std::optional<Quota> quota_for(const Path& folder, Deadline deadline) {
  struct statfs about{};
  if (::statfs(folder.c_str(), &about) != 0) return std::nullopt;
  if (about.f_type == kLustre)
    return asked_quota({"lfs", "quota", "-q", "-u", std::to_string(::getuid()), folder.string()}, deadline);
  if (about.f_type == kNfs) return asked_quota({"quota", "-w", "-p", "-f", folder.string()}, deadline);
  return kernel_quota(folder);
}

}  // namespace

std::optional<Quota> parse_quota(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    const auto columns = columns_of(line);
    if (columns.size() < 8) continue;
    // A filesystem, then used, soft, hard and grace of bytes, and the same of files.
    std::uint64_t numbers[6] = {};
    constexpr std::size_t kPlaces[] = {1, 2, 3, 5, 6, 7};
    bool is_row = true;
    for (std::size_t i = 0; i < std::size(kPlaces); ++i)
      is_row = is_row && read_amount(columns[kPlaces[i]], &numbers[i]);
    if (is_row)
      return quota_of({numbers[0] * kBlock, numbers[1], numbers[2]}, {numbers[3], numbers[4], numbers[5]});
  }
  return std::nullopt;
}

Room room_within(Room room, const Quota& quota) {
  if (quota.most) {
    const ByteCount left{quota.most->value > quota.used.value ? quota.most->value - quota.used.value : 0};
    if (left < room.bytes) {
      room.bytes = left;
      room.bytes_by = "of your quota";
    }
  }
  if (quota.most_files) {
    const std::uint64_t left = *quota.most_files > quota.files ? *quota.most_files - quota.files : 0;
    if (!room.files || left < *room.files) {
      room.files = left;
      room.files_by = "of your quota";
    }
  }
  return room;
}

Result<Room> room_of(const Path& folder, Deadline deadline) {
  struct statvfs about{};
  if (::statvfs(folder.c_str(), &about) != 0) return posix_error(printable(folder.string()), errno);
  Room room;
  room.bytes = {static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize};
  // Filesystems that make inodes as they need them say 0, or what is no number of files.
  if (about.f_files > 0 && about.f_files < (std::uint64_t{1} << 50)) room.files = about.f_favail;
  const auto quota = quota_for(folder, deadline);
  return quota ? room_within(room, *quota) : room;
}

}  // namespace stoker::explain
