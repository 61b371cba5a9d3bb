#include "launch/start/back_checkpoint.h"

#include "base/file.h"
#include "checkpoint/foreign/latest.h"

namespace stoker::launch {
namespace {

// Other folders may have files that look like checkpoints.
constexpr std::string_view kFolder = "checkpoints";

std::optional<Path> newest_in(const Path& folder) {
  RealClock clock;
  NoProgress progress;
  // Files appear there when they are complete.
  const auto latest =
      checkpoint::find_latest(folder, {.match = "", .settle = Duration::zero()}, clock, progress);
  return latest.ok() ? latest->path : std::nullopt;
}

}  // namespace

std::optional<Path> find_back_checkpoint(const job::Job& job, const record::RunFolder& folder) {
  const auto attempts = folder.attempts();
  if (!attempts.ok()) return std::nullopt;
  for (auto attempt = attempts->rbegin(); attempt != attempts->rend(); ++attempt) {
    const Path back = std::filesystem::absolute(attempt->folder()) / "back";
    const auto nodes = list_directory(back);
    for (std::size_t i = 0; nodes.ok() && i < nodes->size(); ++i) {
      for (const std::string& name : job.stage.back) {
        const Path results = (back / (*nodes)[i] / name / "").lexically_normal().parent_path();
        if (results.filename() != kFolder || !folder_exists(results)) continue;
        if (auto found = newest_in(results)) return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace stoker::launch
