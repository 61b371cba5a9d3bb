#include "sweep/storage/storage_url.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/vfs.h>

#include "base/file.h"

namespace stoker::sweep {

namespace {

constexpr std::array<std::string_view, 3> kSchemes = {"journal", "postgresql", "sqlite"};

struct SharedFilesystem {
  std::uint64_t type;
  std::string_view name;
};
// statfs(2), and the headers of filesystems that it does not list. FUSE: sshfs, s3fs and others.
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

bool is_storage_url(std::string_view text) { return text.find("://") != std::string_view::npos; }

Result<StorageUrl> parse_storage_url(std::string_view text) {
  const std::size_t mark = text.find('#');
  StorageUrl result;
  result.url = text.substr(0, mark);
  if (mark != std::string_view::npos) result.study = text.substr(mark + 1);
  const std::size_t colon = result.url.find("://");
  const std::string scheme = result.url.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : result.url.substr(colon + 3);
  if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end())
    return invalid("{}: '{}' is no storage of studies{}", shown_url(result.url), printable(scheme),
                   suggestion(scheme, kSchemes));
  if (scheme == "postgresql") return result;
  // SQLAlchemy's form has a third slash before the path.
  const std::string path = scheme == "sqlite" && !rest.empty() ? rest.substr(1) : rest;
  if (!path.starts_with('/') || !rest.starts_with('/'))
    return invalid("{}: is not an absolute path", shown_url(result.url))
        .cure(scheme == "sqlite" ? "sqlite:////tmp/studies.db#{}" : "journal:///shared/studies.log#{}",
              result.study.empty() ? "name" : result.study);
  result.file = path;
  return result;
}

std::string shown_url(std::string_view url) {
  const std::size_t start = url.find("://");
  const std::size_t at = url.find('@');
  if (start == std::string_view::npos || at == std::string_view::npos) return printable(url);
  const std::size_t colon = url.find(':', start + 3);
  if (colon == std::string_view::npos || colon > at) return printable(url);
  return printable(format("{}:***{}", url.substr(0, colon), url.substr(at)));
}

std::string_view shared_filesystem(std::uint64_t type) {
  const auto found = std::find_if(kShared.begin(), kShared.end(),
                                  [&](const SharedFilesystem& known) { return known.type == type; });
  return found == kShared.end() ? std::string_view() : found->name;
}

Status check_storage(const StorageUrl& url) {
  if (!url.url.starts_with("sqlite")) return {};
  struct statfs about{};
  const Path folder = url.file.parent_path();
  if (::statfs(folder.c_str(), &about) != 0) return posix_error(folder.string(), errno);
  // The type is signed or not, and of 32 or 64 bits, as the machine has it.
  const std::string_view shared = shared_filesystem(static_cast<std::uint64_t>(about.f_type) & 0xFFFFFFFF);
  if (shared.empty()) return {};
  return invalid("{}: SQLite on {} (locks of SQLite do not hold between nodes, and a study is lost)",
                 shown_url(url.url), shared)
      .cure("journal://{}", Path(url.file).replace_extension(".log").string());
}

}  // namespace stoker::sweep
