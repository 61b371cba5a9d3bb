#include "base/shared_filesystem.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/vfs.h>

namespace stoker {

namespace {

struct SharedFilesystem {
  std::uint64_t type;
  std::string_view name;
};
// statfs(2), and the headers of filesystems that it does not list.
constexpr std::array<SharedFilesystem, 14> kShared = {{
    {0x6969, "NFS"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0x00C36400, "CephFS"},
    {0x65735546, "FUSE"},
    {0x517B, "SMB"},
    {0xFF534D42, "SMB"},
    {0xFE534D42, "SMB"},
    {0x5346414F, "AFS"},
    {0x01021997, "9P"},
    {0xAAD7AAEA, "PanFS"},
    {0x20030528, "OrangeFS"},
    {0x01161970, "GFS2"},
}};

}  // namespace

std::string_view shared_filesystem(std::uint64_t type) {
  const auto found = std::find_if(kShared.begin(), kShared.end(),
                                  [&](const SharedFilesystem& known) { return known.type == type; });
  return found == kShared.end() ? std::string_view() : found->name;
}

Result<std::string_view> shared_filesystem_at(const Path& path) {
  struct statfs about{};
  if (::statfs(path.c_str(), &about) != 0) return posix_error(path.string(), errno);
  // The type is signed or not, and of 32 or 64 bits, as the machine has it.
  return shared_filesystem(static_cast<std::uint64_t>(about.f_type) & 0xFFFFFFFF);
}

}  // namespace stoker
