#include "sweep/storage/storage_url.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/shared_filesystem.h"

namespace stoker::sweep {

namespace {

constexpr std::array<std::string_view, 3> kSchemes = {"journal", "postgresql", "sqlite"};

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

Status check_storage(const StorageUrl& url) {
  if (!url.url.starts_with("sqlite")) return {};
  const Path folder = url.file.parent_path();
  STOKER_ASSIGN_OR_RETURN(shared, shared_filesystem_at(folder));
  if (shared.empty()) return {};
  return invalid("{}: SQLite on {} (locks of SQLite do not hold between nodes, and a study is lost)",
                 shown_url(url.url), shared)
      .cure("journal://{}", Path(url.file).replace_extension(".log").string());
}

}  // namespace stoker::sweep
