#include "checkpoint/save/step_writer.h"

#include "base/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"
#include "checkpoint/retention/retention.h"
#include "checkpoint/save/shard_writer.h"
#include "checkpoint/save/share.h"

namespace stoker::checkpoint {

namespace {

RetentionPolicy retention_policy(const SaverOptions& options) {
  return {.keep_last = options.keep_last,
          .keep_every = options.keep_every,
          .keep_best = options.keep_best,
          .metric = options.metric};
}

// Compares rank 0's checksums with all others.
Status check_agreement(const SavePlan& plan, const std::vector<ReadyMarker>& markers) {
  if (markers[0].checksums.empty()) return {};
  for (std::size_t r = 1; r < markers.size(); ++r) {
    STOKER_RETURN_IF_ERROR(
        compare_checksums(plan, markers[0].checksums, markers[r].checksums, Rank{static_cast<int>(r)}));
  }
  return {};
}

// Only the ranks together can determine whether their rows cover the whole tensors.
Status check_shards(const SavePlan& plan, const StepManifest& manifest) {
  if (plan.parts[0].sharded + plan.parts[1].sharded == 0) return {};
  return check_pieces("rows of the ranks", manifest);
}

}  // namespace

Status StepWriter::write_locally(StepInFlight& step, const StopToken& stop) const {
  step.local_share =
      share_folder(options_.local, step.head.step, options_.writer, step.repeat, options_.rank);
  Status status = write_local_files(step, stop);
  if (status.ok()) {
    notify_observer(CommitPoint::local_share_written);
  } else {
    remove_share(std::exchange(step.local_share, {}));
    step.marker.files.clear();
  }
  return status;
}

Status StepWriter::write_local_files(StepInFlight& step, const StopToken& stop) const {
  STOKER_RETURN_IF_ERROR(make_directories(options_.local));
  STOKER_RETURN_IF_ERROR(make_directory(step.local_share));
  for (const StepPart part : kParts) STOKER_RETURN_IF_ERROR(make_directory(step.local_share / to_text(part)));
  STOKER_RETURN_IF_ERROR(write_share(step, step.local_share, stop));
  for (const StepPart part : kParts) STOKER_RETURN_IF_ERROR(sync_directory(step.local_share / to_text(part)));
  step.marker.write_s = step.since_copy.lap();
  STOKER_RETURN_IF_ERROR(write_share_record({step.local_share, options_.rank, step.marker, step.head}));
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
    if (!step.local_share.empty()) remove_share(step.local_share);
    notify_observer(CommitPoint::local_share_removed);
  } else if (!step.local_share.empty()) {
    // The next attempt may succeed with the newest of them; older ones are useless to it.
    for (const Path& share : undrained_) remove_share(share);
    undrained_.assign(1, step.local_share);
  }
}

Result<SaveTimes> StepWriter::commit_pending(StepInFlight& step, const StopToken& stop) {
  PendingStep pending(options_, step.head.step, step.repeat, step.deadline);
  const Status opened = pending.open();
  // An existing folder belongs to another writer: nothing in it is touched.
  if (opened.code() == Code::exists) return opened;
  auto times = opened.ok() ? commit_share(step, pending, stop) : Result<SaveTimes>(opened);
  if (times.ok()) return times;
  Status why = pending.explain(times.status());
  pending.abort(why, step.marker.files);
  if (options_.rank.value == 0) aborted_.emplace_back(step.head.step, pending.folder());
  return why;
}

Result<SaveTimes> StepWriter::commit_share(StepInFlight& step, PendingStep& pending, const StopToken& stop) {
  if (step.local_share.empty()) {
    STOKER_RETURN_IF_ERROR(write_share(step, pending.folder(), stop));
  } else {
    STOKER_RETURN_IF_ERROR(
        copy_share_files({step.local_share, options_.rank, step.marker, {}}, pending.folder(), stop));
  }
  STOKER_RETURN_IF_ERROR(pending.sync_folders(step.marker.files));
  if (step.local_share.empty()) step.marker.write_s = step.since_copy.lap();
  SaveTimes times{step.head.step, step.marker.stall_s, step.marker.write_s, 0,
                  total_bytes(step.marker.files)};
  STOKER_RETURN_IF_ERROR(pending.write_ready_marker(step.marker));
  if (options_.rank.value == 0) {
    STOKER_RETURN_IF_ERROR(publish(step, pending, times, stop));
  } else {
    STOKER_RETURN_IF_ERROR(pending.wait_for_commit(stop));
  }
  times.commit_s = step.since_copy.seconds();
  return times;
}

// Rank 0's part.
Status StepWriter::publish(StepInFlight& step, PendingStep& pending, SaveTimes& times,
                           const StopToken& stop) {
  STOKER_ASSIGN_OR_RETURN(markers, pending.collect(step.marker, stop));
  STOKER_RETURN_IF_ERROR(check_agreement(step.layout->plan, markers));
  const StepManifest manifest = complete_manifest(std::move(step.head), std::move(markers));
  step.head.step = manifest.step;  // for messages
  times.bytes = total_bytes(manifest.files);
  STOKER_RETURN_IF_ERROR(check_shards(step.layout->plan, manifest));
  STOKER_RETURN_IF_ERROR(pending.publish(manifest));
  // From here on the step is saved: nothing below may turn that into an error.
  remove_aborted();
  (void)remove_abandoned(options_.directory, RealClock().wall());
  (void)prune_steps(options_.directory, retention_policy(options_), manifest.step, options_.protected_step);
  notify_observer(CommitPoint::pruned);
  return {};
}

// Writes to `folder`: of the pending step, or of a share on the node-local disk.
Status StepWriter::write_share(StepInFlight& step, const Path& folder, const StopToken& stop) const {
  const SaveSlot& slot = *step.slot;
  for (const StepPart part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    if (step.layout->shards[p].order.empty()) continue;
    STOKER_ASSIGN_OR_RETURN(header, make_shard_header(*step.layout, part, options_.rank, step.marker.save));
    const ShardData data{slot.data[p].bytes().first(step.layout->plan.parts[p].bytes), slot.copy_progress[p],
                         step.deadline};
    STOKER_ASSIGN_OR_RETURN(blocks, write_shard(folder / header.file.path, header.bytes, data, stop));
    header.file.blocks = std::move(blocks);
    step.marker.files.push_back(std::move(header.file));
  }
  wait_for_copy(step);
  return {};
}

// Removes aborted steps. REQUIRES: all ranks have left these steps, or is_acknowledged() returned true.
void StepWriter::remove_aborted() {
  for (const auto& [step, folder] : aborted_) {
    // Renamed first: a late rank would otherwise write into it during the removal.
    const Path away = options_.directory / removed_folder_name(step);
    if (rename_path(folder, away).ok()) (void)remove_tree(away);
  }
  aborted_.clear();
}

// At the end, no later step shows that all ranks have read the reason of an abort: each writes an
// acknowledgement. A folder that is not acknowledged in time stays, without data, until the next attempt
// removes it.
void StepWriter::remove_acknowledged(Deadline deadline) {
  for (const auto& [step, folder] : aborted_) {
    while (!is_acknowledged(folder) && !deadline.passed()) RealClock().sleep(std::chrono::milliseconds(2));
  }
  std::erase_if(aborted_, [&](const auto& entry) { return !is_acknowledged(entry.second); });
  remove_aborted();
}

bool StepWriter::is_acknowledged(const Path& folder) const {
  for (int r = 0; r < options_.world_size.value; ++r) {
    if (!path_exists(folder / failed_name(Rank{r}))) return false;
  }
  return true;
}

void StepWriter::notify_observer(CommitPoint point) const {
  if (options_.observe) options_.observe(point);
}

}  // namespace stoker::checkpoint
