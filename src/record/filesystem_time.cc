#include "record/filesystem_time.h"

#include <cmath>
#include <sys/stat.h>

#include "stoker/text.h"

namespace stoker::record {

Result<double> filesystem_time(const Path& folder) {
  const Path file = folder / format(".time-{}", random_name());
  STOKER_RETURN_IF_ERROR(File::create_new(file).status());
  auto now = modified_at(file);
  (void)remove_file(file);
  return now;
}

Result<double> modified_at(const Path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return posix_error(path.string(), errno);
  return static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
}

bool is_recent(const Path& file, double now, double limit_s) {
  const auto modified = modified_at(file);
  return modified.ok() && std::abs(now - *modified) < limit_s;
}

}  // namespace stoker::record
