// Whether there is room for what the run will write.
#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "explain/preflight/notes.h"
#include "explain/preflight/room.h"

namespace stoker::explain {
namespace {

constexpr ByteCount kRecords{64'000'000};  // logs and figures of a run that says little
constexpr std::uint64_t kFilesOfRun = 20;
constexpr std::uint64_t kFilesOfRank = 5;

struct Expected {
  ByteCount each;
  std::uint64_t steps = 0;  // kept at the same time, with the one that is being written
  std::string by;           // "as run … saved", "of resnet50 with sgd"

  ByteCount all() const { return {each.value * steps}; }
};

std::optional<Expected> expected_checkpoints(const job::Job& job,
                                             const std::optional<record::RunFolder>& last,
                                             std::uint64_t classes, const Notes& notes) {
  Expected expected;
  const job::CheckpointOptions& options = job.checkpoint;
  expected.steps = std::uint64_t{options.keep} + options.keep_best + 1;
  if (options.keep_every > Duration::zero() && job.resources.time)
    expected.steps += static_cast<std::uint64_t>(*job.resources.time / options.keep_every);
  expected.steps = std::min<std::uint64_t>(expected.steps, 1'000'000);
  if (const auto saved = last ? last_checkpoint(*last) : std::nullopt) {
    expected.each = {std::min<std::uint64_t>(saved->bytes, std::uint64_t{1} << 42)};
    expected.by = notes.say("as run {} saved", saved->run);
    return expected;
  }
  if (!job.train || options.every.is_never() || (classes == 0 && !job.train->classes)) return std::nullopt;
  const auto bytes = checkpoint_bytes(*job.train, classes);
  if (!bytes) return std::nullopt;
  expected.each = {*bytes};
  expected.by = notes.say("of {} with {}", to_text(job.train->model), to_text(job.train->optimizer.kind));
  return expected;
}

std::string by_text(const std::string& by, const Notes& notes) {
  return by == Room().bytes_by ? notes.say("on the disk") : notes.say("of your quota");
}

std::string files_text(const Room& room, const Notes& notes) {
  return room.files ? notes.say(", {} files {}", grouped(*room.files), by_text(room.files_by, notes))
                    : quoted("");
}

}  // namespace

void check_storage(const job::Job& job, const std::optional<record::RunFolder>& last, std::uint64_t classes,
                   Deadline deadline, Notes& notes) {
  const auto expected = expected_checkpoints(job, last, classes, notes);
  const bool is_apart = job.checkpoint.directory.has_value();
  const auto runs = room_of(standing(job.record.directory), deadline);
  if (runs.ok()) {
    const std::uint64_t ranks = job.resources.world_size();
    const std::uint64_t files =
        kFilesOfRun + kFilesOfRank * ranks + (is_apart || !expected ? 0 : expected->steps * (ranks + 2));
    notes.fact("room", notes.say("runs: {} {}{}", rounded(runs->bytes), by_text(runs->bytes_by, notes),
                                 files_text(*runs, notes)));
    if (!runs->quota_trouble.empty()) notes.fact("quota", notes.say("not known ({})", runs->quota_trouble));
    if (runs->bytes < kRecords) {
      notes.found("little-room", Level::job, "record.directory",
                  notes.say("{} left {}, and the records of a run want some {}", rounded(runs->bytes),
                            by_text(runs->bytes_by, notes), rounded(kRecords)),
                  notes.say("record: {{directory: another place}}"));
    }
    if (runs->files && *runs->files < files) {
      notes.found("few-files", Level::job, "record.directory",
                  notes.say("{} files left {}, and the run makes about {}", grouped(*runs->files),
                            by_text(runs->files_by, notes), grouped(files)),
                  notes.say("record: {{directory: another place}}"));
    }
  }
  if (!expected) return;
  const std::string_view key = is_apart ? "checkpoint.directory" : "record.directory";
  const auto room = is_apart ? room_of(standing(*job.checkpoint.directory), deadline) : runs;
  if (!room.ok()) return;
  notes.fact("saves", notes.say("{} x {} expected ({}), {} {}", expected->steps, rounded(expected->each),
                                expected->by, rounded(room->bytes), by_text(room->bytes_by, notes)));
  if (room->bytes < expected->all()) {
    notes.found("no-room-for-checkpoints", Level::job, key,
                notes.say("{} checkpoints of {} are expected ({}), and {} are left {}", expected->steps,
                          rounded(expected->each), expected->by, rounded(room->bytes),
                          by_text(room->bytes_by, notes)),
                room->bytes.value >= 2 * expected->each.value && job.checkpoint.keep > 1
                    ? std::string("checkpoint: {keep: 1}")
                    : notes.say("checkpoint: {{directory: another place}}"));
  }
}

}  // namespace stoker::explain
