// Commit protocol of a step. P is the pending folder .step-<n>.<writer>.<repeat>. Every rank can compute its
// name: <repeat> counts earlier requests for the step, so a rank whose save fails before it is queued can
// continue with its peers at the next step, and at the next attempt of this one.
//   1. every rank creates P if missing; rank 0, and every rank that finds no readable lease, writes a lease
//   2. every rank writes its files as P/<part>/<name>.part and fsyncs them
//   3. every rank renames its files to their final names and fsyncs their folders
//   4. every rank writes P/rank-<r>.ready; ranks other than 0 with sizes and CRCs
//   5. rank 0 waits for every marker by name and checks markers and file sizes
//   6. rank 0 removes the markers, writes manifest.json, fsyncs it and P
//   7. rank 0 renames P to step-<n>                        <- the step exists from here on
//   8. rank 0 fsyncs the directory, so that a power failure cannot undo 7; its lease stays in the step and
//      names the process that saved it
//   9. rank 0 removes old steps by `keep_last`, counted from step-<n> downwards
// A rank that fails before 4 writes P/rank-<r>.failed instead, also if its save never began. Rank 0 then
// aborts and writes the reason to P/rank-0000.failed, which its peers watch for. After 4 only rank 0 decides:
// a peer that stops to wait leaves its files, since rank 0 may be at 6. A crash before 7 leaves P, which is
// not a step; `remove_abandoned` deletes it once its writer is dead. Older steps are not touched before 9. If
// step-<n> exists already (from an earlier attempt that did not get further), 7 exchanges the two names, so
// one of them is a valid step at every moment. Where the filesystem cannot, the old one is moved away first.
// NFS and Lustre: rename is atomic on the server, but a client may see an old listing for seconds. Ranks
// therefore look up names and open the folder first, which makes the client ask again. There are no locks.
#include "checkpoint/save/commit.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "checkpoint/lease.h"
#include "checkpoint/retention/retention.h"

namespace stoker::checkpoint {

namespace {

using namespace std::chrono_literals;

Status exchange(const Path& a, const Path& b) {
  // The raw system call: older C libraries have no renameat2.
  if (::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return {};
  return posix_error(printable(b.string()), errno);
}

Status make_folder(const Path& path) {
  Status status = make_directory(path);
  if (status.code() != Code::exists) return status;
  if (folder_exists(path)) return {};
  // Rank 0 aborts a step by removing its contents.
  return path_exists(path) ? status : not_found("{}: was removed by another rank", printable(path.string()));
}

std::string own_lease(const SaverOptions& options) {
  return lease_text(make_lease(options.world_size, options.limit, RealClock().wall()));
}

// Fails in a folder that another rank 0 writes.
Status write_lease(const Path& path, const SaverOptions& options) {
  STOKER_ASSIGN_OR_RETURN(file, File::create_new(path));
  STOKER_RETURN_IF_ERROR(file.write(own_lease(options)));
  return file.close();
}

// "rank 1", "ranks 1, 3 and 5 more".
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(kMost, ranks.size()); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kMost) text += format(" and {} more", ranks.size() - kMost);
  return text;
}

// Makes a client of a network filesystem refresh the folder.
void refresh(const Path& folder) { const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

}  // namespace

PendingStep::PendingStep(const SaverOptions& options, Step step, std::uint64_t repeat, Deadline deadline)
    : options_(options),
      step_(step),
      pending_(options.directory / pending_folder_name(step, options.writer, repeat)),
      save_(save_name(options.run, options.writer, step, repeat)),
      deadline_(deadline) {}

PendingStep::PendingStep(const SaverOptions& options, Step step, std::string save, Deadline deadline)
    : options_(options),
      step_(step),
      pending_(options.directory / pending_folder_name(step, options.writer, 0)),
      save_(std::move(save)),
      deadline_(deadline) {}

void PendingStep::notify_observer(CommitPoint point) const {
  if (options_.observe) options_.observe(point);
}

// Short sleeps first, since ranks usually arrive together, then longer ones: a thousand ranks share a file
// server.
void PendingStep::back_off(Duration& pause) const {
  const Duration longest = std::clamp<Duration>(options_.world_size.value * 2ms, 4ms, 500ms);
  RealClock().sleep(std::min(pause, deadline_.left()));
  pause = std::min<Duration>(pause * 2, longest);
}

Status PendingStep::open() {
  Status made = make_folder(pending_);
  if (made.code() == Code::not_found && !folder_exists(options_.directory)) {
    // Removed since the saver was created.
    STOKER_RETURN_IF_ERROR(make_directories(options_.directory));
    made = make_folder(pending_);
  }
  STOKER_RETURN_IF_ERROR(made);
  if (options_.rank.value == 0) {
    STOKER_RETURN_IF_ERROR(write_lease(pending_ / kLeaseName, options_));
  } else {
    // Rank 0 may only have created the folder or started its lease. A rank that dies from here on must be
    // detectable.
    if (!find_lease(pending_).ok()) {
      STOKER_RETURN_IF_ERROR(write_file(pending_ / kMakerLeaseName, own_lease(options_)));
    }
    STOKER_RETURN_IF_ERROR(reported_failure(Rank{0}));
  }
  for (const StepPart part : kParts) STOKER_RETURN_IF_ERROR(make_folder(pending_ / to_text(part)));
  notify_observer(CommitPoint::pending_made);
  return {};
}

Status PendingStep::sync_folders(const std::vector<TensorFile>& files) {
  for (const TensorFile& file : files)
    STOKER_RETURN_IF_ERROR(sync_directory((pending_ / file.path).parent_path()));
  notify_observer(CommitPoint::files_written);
  return {};
}

Status PendingStep::write_ready_marker(const ReadyMarker& marker) {
  // Not synced: no reader needs it after a crash. Rank 0's is for whoever lists the directory.
  const std::string text = options_.rank.value == 0 ? "" : marker_text(marker);
  STOKER_RETURN_IF_ERROR(write_file(pending_ / ready_name(options_.rank), text));
  is_ready_ = true;
  notify_observer(CommitPoint::ready_marker_written);
  return {};
}

// The failure reported by that rank; ok if none.
Status PendingStep::reported_failure(Rank rank) const {
  const auto text = read_file(pending_ / failed_name(rank), 1_MiB);
  if (!text.ok()) return {};
  return parse_failure(format("rank {}", rank), *text);
}

Status PendingStep::check_marker(Rank rank, const ReadyMarker& marker, const std::string& layout) const {
  if (marker.save != save_) {
    return invalid("rank {} saves as '{}', but rank 0 as '{}' (the run differs)", rank, marker.save, save_);
  }
  if (marker.layout != layout) {
    return invalid("rank {} has different tensors than rank 0 (names, types or shapes differ)", rank);
  }
  for (const TensorFile& file : marker.files) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(pending_ / file.path, error);
    if (error) return posix_error(file.path, error.value()).with_context(format("rank {}", rank));
    if (size == file.bytes && file.rank == rank) continue;
    return corrupt("rank {}: {}: is {} bytes long, but {} were written", rank, file.path, size, file.bytes);
  }
  return {};
}

Result<std::vector<ReadyMarker>> PendingStep::collect(ReadyMarker own, const StopToken& stop) {
  std::vector<ReadyMarker> markers(static_cast<std::size_t>(options_.world_size.value));
  STOKER_RETURN_IF_ERROR(check_marker(Rank{0}, own, own.layout));
  markers[0] = std::move(own);
  std::vector<int> missing;
  for (int r = 1; r < options_.world_size.value; ++r) missing.push_back(r);
  for (Duration pause = 1ms;; back_off(pause)) {
    refresh(pending_);
    std::vector<int> still;
    for (const int r : missing) {
      const std::string name = ready_name(Rank{r});
      const auto text = read_file(pending_ / name, kManifestLimit);
      if (!text.ok()) {
        if (text.error().code() != Code::not_found) return text.error();
        STOKER_RETURN_IF_ERROR(reported_failure(Rank{r}));
        still.push_back(r);
        continue;
      }
      STOKER_ASSIGN_OR_RETURN(marker, parse_marker(name, *text));
      STOKER_RETURN_IF_ERROR(check_marker(Rank{r}, marker, markers[0].layout));
      markers[static_cast<std::size_t>(r)] = std::move(marker);
    }
    missing = std::move(still);
    if (missing.empty()) break;
    if (stop.stop_requested()) return cancelled("interrupted while waiting for {}", ranks_text(missing));
    if (deadline_.passed()) {
      return timeout("{} did not write {} within {}", ranks_text(missing),
                     missing.size() == 1 ? "its share" : "their shares", rounded_duration(options_.limit));
    }
  }
  notify_observer(CommitPoint::all_ready);
  return markers;
}

// Another training in the same directory: each would replace the steps of the other.
Status PendingStep::check_replaced(const Path& place) const {
  const auto lease = find_lease(place);
  if (!lease.ok() || writer_state(*lease) != WriterState::running) return {};
  return exists("{}: was saved by process {}, which is still running", printable(place.string()), lease->pid)
      .cure("a separate folder for each training, or end process {} first", lease->pid);
}

Status PendingStep::rename_into_place() {
  const Path place = options_.directory / step_folder_name(step_);
  Status status = rename_path(pending_, place);
  if (status.code() != Code::exists) return status;
  STOKER_RETURN_IF_ERROR(check_replaced(place));
  std::error_code error;
  if (!options_.protected_step.empty() &&
      std::filesystem::equivalent(place, options_.protected_step, error)) {
    return exists("{}: is the step this run resumed from", printable(place.string()));
  }
  const Path old = options_.directory / removed_folder_name(step_);
  if (exchange(pending_, place).ok()) {
    STOKER_RETURN_IF_ERROR(rename_path(pending_, old));
  } else {
    STOKER_RETURN_IF_ERROR(rename_path(place, old));
    STOKER_RETURN_IF_ERROR(rename_path(pending_, place));
  }
  (void)remove_tree(old);  // leftovers are removed by the next remove_abandoned
  return {};
}

Status PendingStep::publish(const StepManifest& manifest) {
  for (int r = 0; r < options_.world_size.value; ++r) {
    STOKER_RETURN_IF_ERROR(remove_file(pending_ / ready_name(Rank{r})));
    (void)remove_file(pending_ / failed_name(Rank{r}));  // of a rank that stopped to wait
  }
  for (const StepPart part : kParts) {
    if (manifest.tensors_of(part).empty()) STOKER_RETURN_IF_ERROR(remove_tree(pending_ / to_text(part)));
  }
  STOKER_RETURN_IF_ERROR(write_file(pending_ / kManifestName, manifest_text(manifest), Durability::synced));
  notify_observer(CommitPoint::manifest_written);
  STOKER_RETURN_IF_ERROR(rename_into_place());
  notify_observer(CommitPoint::published);
  STOKER_RETURN_IF_ERROR(sync_directory(options_.directory));
  (void)remove_file(options_.directory / step_folder_name(step_) / kMakerLeaseName);
  notify_observer(CommitPoint::parent_synced);
  return {};
}

Status PendingStep::wait_for_commit(const StopToken& stop) {
  for (Duration pause = 1ms;; back_off(pause)) {
    refresh(options_.directory);
    STOKER_RETURN_IF_ERROR(reported_failure(Rank{0}));
    if (!folder_exists(pending_)) break;
    if (stop.stop_requested()) return cancelled("interrupted while waiting for rank 0");
    if (deadline_.passed()) {
      return timeout("rank 0 did not commit the step within {}", rounded_duration(options_.limit));
    }
  }
  // A client of a network filesystem may see the new name later than the end of the old one.
  const Deadline visible = Deadline::after(std::min<Duration>(5s, deadline_.left()));
  for (Duration pause = 1ms;; back_off(pause)) {
    const auto text = read_file(options_.directory / step_folder_name(step_) / kManifestName, kManifestLimit);
    if (text.ok() && is_manifest_for_save(*text, save_)) return {};
    if (text.ok() || visible.passed() || stop.stop_requested()) break;
    refresh(options_.directory);
  }
  return unavailable("rank 0 aborted the step without a reason");
}

Status PendingStep::explain(const Status& error) const {
  if (options_.rank.value == 0 || error.code() != Code::not_found) return error;
  const Status reason = reported_failure(Rank{0});
  return reason.ok() ? error : reason;
}

void PendingStep::abort(const Status& error, const std::vector<TensorFile>& files) {
  // The note first: a rank whose files vanish looks for it. On a full disk it fits only once the files are
  // removed.
  const Path note = pending_ / failed_name(options_.rank);
  bool is_written = write_file(note, failure_text(error)).ok();
  if (!is_ready_) {
    for (const TensorFile& file : files) (void)remove_file(pending_ / file.path);
  }
  if (options_.rank.value == 0) {
    for (const StepPart part : kParts) (void)remove_tree(pending_ / to_text(part));
  }
  if (!is_written) is_written = write_file(note, failure_text(error)).ok();
  if (!is_written) (void)File::create(note);  // an empty note needs no block
}

void report_failed_save(const SaverOptions& options, Step step, std::uint64_t repeat, const Status& why) {
  if (options.world_size.value == 1) return;
  PendingStep pending(options, step, repeat, Deadline::after(options.limit));
  // An existing folder belongs to another writer.
  if (pending.open().code() != Code::exists) pending.abort(why, {});
}

}  // namespace stoker::checkpoint
