#include "checkpoint/save/step_writer.h"

#include "base/file.h"
#include "checkpoint/catalog.h"
#include "checkpoint/layout.h"
#include "checkpoint/local/share.h"
#include "checkpoint/retention.h"
#include "checkpoint/save/shard_writer.h"

namespace stoker::checkpoint {

namespace {

KeepRule keep_rule(const SaverOptions& options) {
  return {.newest = options.keep,
          .every = options.keep_every,
          .best = options.keep_best,
          .metric = options.metric};
}

// Rank 0's samples against everybody else's.
Status check_agreement(const SavePlan& plan, const std::vector<ReadyMarker>& markers) {
  if (markers[0].samples.empty()) return {};
  for (std::size_t r = 1; r < markers.size(); ++r) {
    RETURN_IF_ERROR(compare_samples(plan, markers[0].samples, markers[r].samples, Rank{static_cast<int>(r)}));
  }
  return {};
}

// Nobody but the ranks together knows whether the rows that each holds are all of them.
Status check_shards(const SavePlan& plan, const Manifest& manifest) {
  if (plan.parts[0].sharded + plan.parts[1].sharded == 0) return {};
  return check_pieces("rows of the ranks", manifest);
}

}  // namespace

Status StepWriter::keep_on_node(StepInFlight& step, const StopToken& stop) const {
  step.kept = share_folder(options_.local, step.head.step, options_.writer, step.repeat, options_.rank);
  Status status = write_kept(step, stop);
  if (status.ok()) {
    passed(CommitPoint::share_kept);
  } else {
    remove_share(std::exchange(step.kept, {}));
    step.marker.files.clear();
  }
  return status;
}

Status StepWriter::write_kept(StepInFlight& step, const StopToken& stop) const {
  RETURN_IF_ERROR(make_directories(options_.local));
  RETURN_IF_ERROR(make_directory(step.kept));
  for (const Part part : kParts) RETURN_IF_ERROR(make_directory(step.kept / to_text(part)));
  RETURN_IF_ERROR(write_share(step, step.kept, stop));
  for (const Part part : kParts) RETURN_IF_ERROR(sync_directory(step.kept / to_text(part)));
  step.marker.write_s = step.since_copy.lap();
  RETURN_IF_ERROR(write_share_record({step.kept, options_.rank, step.marker, step.head}));
  return sync_directory(options_.local);
}

Result<SaveTimes> StepWriter::commit(StepInFlight& step, const StopToken& stop) {
  auto times = commit_pending(step, stop);
  if (!options_.local.empty()) remove_shares(step, times.ok());
  return times;
}

void StepWriter::remove_shares(const StepInFlight& step, bool is_saved) {
  if (is_saved) {
    for (const Path& share : undrained_) remove_share(share);
    undrained_.clear();
    if (!step.kept.empty()) remove_share(step.kept);
    passed(CommitPoint::share_removed);
  } else if (!step.kept.empty()) {
    // The next attempt may have more luck with the newest of them; older ones are of no use to it.
    for (const Path& share : undrained_) remove_share(share);
    undrained_.assign(1, step.kept);
  }
}

Result<SaveTimes> StepWriter::commit_pending(StepInFlight& step, const StopToken& stop) {
  PendingStep pending(options_, step.head.step, step.repeat, step.deadline);
  const Status opened = pending.open();
  // A folder that was there before belongs to somebody else: nothing of it is touched.
  if (opened.code() == Code::exists) return opened;
  auto times = opened.ok() ? commit_share(step, pending, stop) : Result<SaveTimes>(opened);
  if (times.ok()) return times;
  Status why = pending.explain(times.status());
  pending.give_up(why, step.marker.files);
  if (options_.rank.value == 0) given_up_.emplace_back(step.head.step, pending.folder());
  return why;
}

Result<SaveTimes> StepWriter::commit_share(StepInFlight& step, PendingStep& pending, const StopToken& stop) {
  if (step.kept.empty()) {
    RETURN_IF_ERROR(write_share(step, pending.folder(), stop));
  } else {
    RETURN_IF_ERROR(copy_share_files({step.kept, options_.rank, step.marker, {}}, pending.folder(), stop));
  }
  RETURN_IF_ERROR(pending.sync_folders(step.marker.files));
  if (step.kept.empty()) step.marker.write_s = step.since_copy.lap();
  SaveTimes times{step.head.step, step.marker.stall_s, step.marker.write_s, 0,
                  total_bytes(step.marker.files)};
  RETURN_IF_ERROR(pending.tell_ready(step.marker));
  if (options_.rank.value == 0) {
    RETURN_IF_ERROR(publish(step, pending, times, stop));
  } else {
    RETURN_IF_ERROR(pending.await_outcome(stop));
  }
  times.commit_s = step.since_copy.seconds();
  return times;
}

// Rank 0's part.
Status StepWriter::publish(StepInFlight& step, PendingStep& pending, SaveTimes& times,
                           const StopToken& stop) {
  OK_OR_RETURN(markers, pending.collect(step.marker, stop));
  RETURN_IF_ERROR(check_agreement(step.layout->plan, markers));
  const Manifest manifest = complete_manifest(std::move(step.head), std::move(markers));
  step.head.step = manifest.step;  // for words about it
  times.bytes = total_bytes(manifest.files);
  RETURN_IF_ERROR(check_shards(step.layout->plan, manifest));
  RETURN_IF_ERROR(pending.publish(manifest));
  // After this point the step is saved: nothing below may turn that into an error.
  tidy();
  (void)prune_steps(options_.directory, keep_rule(options_), manifest.step, options_.reading);
  passed(CommitPoint::pruned);
  return {};
}

// Into `folder`: of the pending step, or of a share on the node's own disk.
Status StepWriter::write_share(StepInFlight& step, const Path& folder, const StopToken& stop) const {
  const Slot& slot = *step.slot;
  for (const Part part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    if (step.layout->shards[p].order.empty()) continue;
    OK_OR_RETURN(header, header_of(*step.layout, part, options_.rank, step.marker.save));
    const ShardData data{slot.data[p].bytes().first(step.layout->plan.parts[p].bytes), slot.arriving[p],
                         step.deadline};
    OK_OR_RETURN(blocks, write_shard(folder / header.file.path, header.bytes, data, stop));
    header.file.blocks = std::move(blocks);
    step.marker.files.push_back(std::move(header.file));
  }
  wait_for_copy(step);
  return {};
}

// Removes what was given up. REQUIRES: every rank is past those steps, or has_been_read() was asked.
void StepWriter::tidy() {
  for (const auto& [step, folder] : given_up_) {
    // Away first: a rank that is late would otherwise write into it while it is being removed.
    const Path away = options_.directory / removed_folder_name(step);
    if (rename_path(folder, away).ok()) (void)remove_tree(away);
  }
  given_up_.clear();
}

// At the end no later step tells that the others have read why one was given up: each leaves a note of its
// own when it has. A folder that is not read in time stays, without data, for the next attempt to remove.
void StepWriter::tidy_what_was_read(Deadline deadline) {
  for (const auto& [step, folder] : given_up_) {
    while (!has_been_read(folder) && !deadline.passed()) RealClock().sleep(std::chrono::milliseconds(2));
  }
  std::erase_if(given_up_, [&](const auto& entry) { return !has_been_read(entry.second); });
  tidy();
}

bool StepWriter::has_been_read(const Path& folder) const {
  for (int r = 0; r < options_.world_size.value; ++r) {
    if (!path_exists(folder / failed_name(Rank{r}))) return false;
  }
  return true;
}

void StepWriter::passed(CommitPoint point) const {
  if (options_.observe) options_.observe(point);
}

}  // namespace stoker::checkpoint
