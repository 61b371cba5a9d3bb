#include "data/look/inside/unfinished.h"

#include <algorithm>

#include "base/text.h"
#include "data/pack/outline.h"
#include "format/manifest.h"

namespace stoker::data {

namespace {

// By the names that workspace.cc gives to the plan, and to the fragment of a shard that is finished.
bool has_all_shards(const Path& folder) {
  constexpr ByteCount kPlanLimit = 4_GiB;
  const Path pending = folder / formats::kPendingFolder;
  if (!path_exists(pending / "plan") || path_exists(folder / formats::kManifestFile)) return false;
  const Result<std::string> text = read_file(pending / "plan", kPlanLimit);
  if (!text.ok()) return false;
  const Result<Outline> plan = Outline::decode(*text, "plan");
  return plan.ok() && std::ranges::all_of(plan->shards, [&](const ShardOutline& shard) {
           return path_exists(pending / (shard.file + ".fragment"));
         });
}

}  // namespace

Status why_no_dataset(const Path& folder, Status why) {
  if (!has_all_shards(folder)) return why;
  return not_found("{}: is not finished: all its shards are packed, and not merged",
                   printable(folder.string()))
      .cure("stoker data merge {}", shell_quote(folder.string()));
}

}  // namespace stoker::data
