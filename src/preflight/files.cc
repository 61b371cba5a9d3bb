#include "preflight/files.h"

#include <algorithm>
#include <unistd.h>

#include "base/file.h"
#include "record/capsule.h"
#include "stoker/text.h"

namespace stoker::preflight {

void check_files(const job::Job& job, Notes& notes) {
  const auto check_readable = [&](std::string_view key, const Path& path) {
    if (!path_exists(path)) {
      notes.found("no-file", Level::job, key, message("{}: no such file", printable(path.string())));
    } else if (::access(path.c_str(), R_OK) != 0) {
      notes.found("no-file", Level::job, key, message("{}: no permission to read", printable(path.string())));
    } else {
      return true;
    }
    return false;
  };
  std::size_t staged = 0;
  for (const std::string& path : job.stage.unpack) staged += check_readable("stage.unpack", path) ? 1 : 0;
  for (const std::string& path : job.stage.copy) staged += check_readable("stage.copy", path) ? 1 : 0;
  if (staged > 0)
    notes.fact("stage",
               staged == 1 ? message("1 source to every node") : message("{} sources to every node", staged));
  if (job.train && job.train->file) check_readable("train.file", *job.train->file);
  if (job.environment.container) check_readable("environment.container", *job.environment.container);
  if (job.environment.wheelhouse && !folder_exists(*job.environment.wheelhouse)) {
    notes.found("no-file", Level::job, "environment.wheelhouse",
                message("{}: no such folder", printable(job.environment.wheelhouse->string())));
  }
}

void check_data_version(const job::Job& job, const std::optional<record::RunFolder>& last,
                        const std::map<std::string, std::string>& versions, Notes& notes) {
  if (!last) return;
  const record::Capsule capsule = record::read_capsule(*last);
  if (!capsule.data) return;
  for (const record::DataInfo& was : *capsule.data) {
    const auto now = versions.find(was.name);
    if (now == versions.end() || was.version.empty() || now->second == was.version) continue;
    const auto source = job.data.find(was.name);
    if (source == job.data.end()) continue;
    notes.found("data-changed", Level::advice, format("data.{}.source", was.name),
                message("version {}; the last run with this name used {} ({})", now->second.substr(0, 12),
                        was.version.substr(0, 12), last->id()),
                format("stoker data diff {} {}", shell_quote(was.source),
                       shell_quote(source->second.source.string())));
  }
}

}  // namespace stoker::preflight
