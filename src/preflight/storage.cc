#include "preflight/storage.h"

#include <algorithm>

#include "base/file.h"
#include "preflight/free_space.h"
#include "preflight/last_run.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

constexpr ByteCount kRecords{64'000'000};  // logs and metrics of a quiet run
constexpr std::uint64_t kFilesOfRun = 20;
constexpr std::uint64_t kFilesOfRank = 5;

struct ExpectedCheckpoints {
  ByteCount each;
  std::uint64_t steps = 0;  // kept at the same time, including the one being written
  Message by;               // "as run … saved", "of resnet50 with sgd"

  ByteCount all() const { return {each.value * steps}; }
};

std::optional<ExpectedCheckpoints> expected_checkpoints(const job::Job& job,
                                                        const std::optional<record::RunFolder>& last,
                                                        std::uint64_t classes) {
  ExpectedCheckpoints expected;
  const job::CheckpointOptions& options = job.checkpoint;
  expected.steps = std::uint64_t{options.keep_last} + options.keep_best + 1;
  if (options.keep_every > Duration::zero() && job.resources.time)
    expected.steps += static_cast<std::uint64_t>(*job.resources.time / options.keep_every);
  expected.steps = std::min<std::uint64_t>(expected.steps, 1'000'000);
  if (const auto saved = last ? last_checkpoint(*last) : std::nullopt) {
    expected.each = {std::min<std::uint64_t>(saved->bytes, std::uint64_t{1} << 42)};
    expected.by = message("size in run {}", saved->run);
    return expected;
  }
  if (!job.train || options.every.is_never() || (classes == 0 && !job.train->classes)) return std::nullopt;
  const auto bytes = checkpoint_bytes(*job.train, classes);
  if (!bytes) return std::nullopt;
  expected.each = {*bytes};
  expected.by = message("of {} with {}", to_text(job.train->model), to_text(job.train->optimizer.kind));
  return expected;
}

Message limit_text(const std::string& by) {
  return by == FreeSpace().bytes_limited_by ? message("on the disk") : message("of your quota");
}

Message files_count(std::uint64_t files) {
  return files == 1 ? message("1 file") : message("{} files", grouped(files));
}

Message files_text(const FreeSpace& space) {
  return space.files ? message(", {} {}", files_count(*space.files), limit_text(space.files_limited_by))
                     : Message();
}

}  // namespace

void check_storage(const job::Job& job, const std::optional<record::RunFolder>& last, std::uint64_t classes,
                   Deadline deadline, Notes& notes) {
  const auto expected = expected_checkpoints(job, last, classes);
  const bool is_apart = job.checkpoint.directory.has_value();
  const auto runs = free_space_of(nearest_existing(job.record.directory), deadline);
  if (runs.ok()) {
    const std::uint64_t ranks = job.resources.world_size();
    const std::uint64_t files =
        kFilesOfRun + kFilesOfRank * ranks + (is_apart || !expected ? 0 : expected->steps * (ranks + 2));
    notes.fact("space", message("runs: {} {}{}", rounded(runs->bytes), limit_text(runs->bytes_limited_by),
                                files_text(*runs)));
    if (!runs->quota_error.empty()) notes.fact("quota", message("not known ({})", runs->quota_error));
    if (runs->bytes < kRecords) {
      notes.found("low-disk-space", Level::job, "record.directory",
                  message("{} left {}, and the records of a run need about {}", rounded(runs->bytes),
                          limit_text(runs->bytes_limited_by), rounded(kRecords)),
                  message("record: {{directory: a different folder}}"));
    }
    if (runs->files && *runs->files < files) {
      notes.found("few-inodes", Level::job, "record.directory",
                  message("{} left {}, and the run creates about {}", files_count(*runs->files),
                          limit_text(runs->files_limited_by), grouped(files)),
                  message("record: {{directory: a different folder}}"));
    }
  }
  if (!expected) return;
  const std::string_view key = is_apart ? "checkpoint.directory" : "record.directory";
  const auto space = is_apart ? free_space_of(nearest_existing(*job.checkpoint.directory), deadline) : runs;
  if (!space.ok()) return;
  notes.fact("saves", message("{} x {} expected ({}), {} {}", expected->steps, rounded(expected->each),
                              expected->by, rounded(space->bytes), limit_text(space->bytes_limited_by)));
  if (space->bytes < expected->all()) {
    notes.found(
        "no-space-for-checkpoints", Level::job, key,
        message("{} checkpoints of {} expected ({}), {} left {}", expected->steps, rounded(expected->each),
                expected->by, rounded(space->bytes), limit_text(space->bytes_limited_by)),
        space->bytes.value >= 2 * expected->each.value && job.checkpoint.keep_last > 1
            ? Message("checkpoint: {keep_last: 1}")
            : message("checkpoint: {{directory: a different folder}}"));
  }
}

}  // namespace stoker::preflight
