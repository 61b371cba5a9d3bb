// How a step is committed. P is the pending folder .step-<n>.<writer>.<repeat>, whose name every rank can
// compute: <repeat> counts how often the step was asked for before. A rank whose save of one step fails
// before it is handed over so meets the others again at the next step, and at the next try of this one.
//   1. every rank makes P if it is not there; rank 0, and every rank that finds no lease it can read, leave
//   one
//   2. every rank writes its files as P/<part>/<name>.part and fsyncs them
//   3. every rank gives its files their names and fsyncs the folders they are in
//   4. every rank writes P/rank-<r>.ready, the others than rank 0 with sizes and CRCs
//   5. rank 0 waits for every marker, by name, and checks markers and sizes of files
//   6. rank 0 removes the markers, writes manifest.json, fsyncs it and P
//   7. rank 0 renames P to step-<n>                        <- the step exists from here on
//   8. rank 0 fsyncs the directory, so that a power cut cannot undo 7, and removes the leases
//   9. rank 0 removes the steps beyond `keep`, counted from step-<n> downwards
// A rank that fails before 4 writes P/rank-<r>.failed instead; rank 0 then gives up and says so in
// P/rank-0000.failed, which the others look for. A crash before 7 leaves P, which nobody takes for a step and
// `remove_abandoned` takes away once its writer is dead; the steps before it are not touched until 9. When
// step-<n> is there already (written by an earlier attempt that did not get further) 7 exchanges the two
// names, so that one of them is a whole step at every moment; where the filesystem cannot, the old one is
// moved away first. NFS and Lustre: rename is atomic on the server; a client may see an old listing for
// seconds, so ranks look for names and open the folder first, which makes the client ask again. No locks are
// used.
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
#include "checkpoint/retention.h"

namespace stoker::checkpoint {

namespace {

using namespace std::chrono_literals;

Status exchange(const Path& a, const Path& b) {
  // The raw call: older C libraries have no renameat2.
  if (::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return {};
  return posix_error(printable(b.string()), errno);
}

Status make_folder(const Path& path) {
  Status status = make_directory(path);
  if (status.code() != Code::exists) return status;
  if (folder_exists(path)) return {};
  // Rank 0 gives a step up by removing what is in it.
  return path_exists(path) ? status : not_found("{}: is gone again", printable(path.string()));
}

std::string own_lease(const SaverOptions& options) {
  return lease_text(make_lease(options.world_size, options.limit, RealClock().wall()));
}

// Refuses a folder that another rank 0 writes.
Status leave_lease(const Path& path, const SaverOptions& options) {
  OK_OR_RETURN(file, File::create_new(path));
  RETURN_IF_ERROR(file.write(own_lease(options)));
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

// Makes a client of a network filesystem look at the folder anew.
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

void PendingStep::passed(CommitPoint point) const {
  if (options_.observe) options_.observe(point);
}

// Short naps at first, since ranks usually arrive together, then longer ones: a thousand ranks share a file
// server.
void PendingStep::nap(Duration& pause) const {
  const Duration longest = std::clamp<Duration>(options_.world_size.value * 2ms, 4ms, 500ms);
  RealClock().sleep(std::min(pause, deadline_.left()));
  pause = std::min<Duration>(pause * 2, longest);
}

Status PendingStep::open() {
  RETURN_IF_ERROR(make_folder(pending_));
  if (options_.rank.value == 0) {
    RETURN_IF_ERROR(leave_lease(pending_ / kLeaseName, options_));
  } else {
    // Rank 0 may have made the folder, or begun its lease, and not be further: whoever dies from here on must
    // be recognisable.
    if (!find_lease(pending_).ok()) {
      RETURN_IF_ERROR(write_file(pending_ / kMakerLeaseName, own_lease(options_)));
    }
    RETURN_IF_ERROR(error_of(Rank{0}));
  }
  for (const Part part : kParts) RETURN_IF_ERROR(make_folder(pending_ / to_text(part)));
  passed(CommitPoint::pending_made);
  return {};
}

Status PendingStep::sync_folders(const std::vector<ShardFile>& files) {
  for (const ShardFile& file : files) RETURN_IF_ERROR(sync_directory((pending_ / file.path).parent_path()));
  passed(CommitPoint::files_written);
  return {};
}

Status PendingStep::tell_ready(const ReadyMarker& marker) {
  // Not synced: after a crash nobody reads it. Rank 0's is for who lists the directory.
  const std::string text = options_.rank.value == 0 ? "" : marker_text(marker);
  RETURN_IF_ERROR(write_file(pending_ / ready_name(options_.rank), text));
  passed(CommitPoint::ready_told);
  return {};
}

// What that rank said when it gave up; ok if it has not.
Status PendingStep::error_of(Rank rank) const {
  const auto text = read_file(pending_ / failed_name(rank), 1_MiB);
  if (!text.ok()) return {};
  return parse_failure(format("rank {}", rank), *text);
}

Status PendingStep::check_marker(Rank rank, const ReadyMarker& marker, const std::string& layout) const {
  if (marker.save != save_) {
    return invalid("rank {} saves as '{}', rank 0 as '{}' (the run differs)", rank, marker.save, save_);
  }
  if (marker.layout != layout) {
    return invalid("rank {} has other tensors than rank 0 (names, types or shapes differ)", rank);
  }
  for (const ShardFile& file : marker.files) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(pending_ / file.path, error);
    if (error) return posix_error(file.path, error.value()).with_context(format("rank {}", rank));
    if (size == file.bytes && file.rank == rank) continue;
    return corrupt("rank {}: {}: is {} bytes long, {} were written", rank, file.path, size, file.bytes);
  }
  return {};
}

Result<std::vector<ReadyMarker>> PendingStep::collect(ReadyMarker own, const StopToken& stop) {
  std::vector<ReadyMarker> markers(static_cast<std::size_t>(options_.world_size.value));
  RETURN_IF_ERROR(check_marker(Rank{0}, own, own.layout));
  markers[0] = std::move(own);
  std::vector<int> missing;
  for (int r = 1; r < options_.world_size.value; ++r) missing.push_back(r);
  for (Duration pause = 1ms;; nap(pause)) {
    refresh(pending_);
    std::vector<int> still;
    for (const int r : missing) {
      const std::string name = ready_name(Rank{r});
      const auto text = read_file(pending_ / name, kManifestLimit);
      if (!text.ok()) {
        if (text.error().code() != Code::not_found) return text.error();
        RETURN_IF_ERROR(error_of(Rank{r}));
        still.push_back(r);
        continue;
      }
      OK_OR_RETURN(marker, parse_marker(name, *text));
      RETURN_IF_ERROR(check_marker(Rank{r}, marker, markers[0].layout));
      markers[static_cast<std::size_t>(r)] = std::move(marker);
    }
    missing = std::move(still);
    if (missing.empty()) break;
    if (stop.stop_requested()) return cancelled("stopped while waiting for {}", ranks_text(missing));
    if (deadline_.passed()) {
      return timeout("{} did not write {} within {}", ranks_text(missing),
                     missing.size() == 1 ? "its share" : "their shares", rounded_duration(options_.limit));
    }
  }
  passed(CommitPoint::all_ready);
  return markers;
}

Status PendingStep::put_in_place() {
  const Path place = options_.directory / step_folder_name(step_);
  Status status = rename_path(pending_, place);
  if (status.code() != Code::exists) return status;
  std::error_code error;
  if (!options_.reading.empty() && std::filesystem::equivalent(place, options_.reading, error)) {
    return exists("{}: is the step this run resumed from", printable(place.string()));
  }
  const Path old = options_.directory / removed_folder_name(step_);
  if (exchange(pending_, place).ok()) {
    RETURN_IF_ERROR(rename_path(pending_, old));
  } else {
    RETURN_IF_ERROR(rename_path(place, old));
    RETURN_IF_ERROR(rename_path(pending_, place));
  }
  (void)remove_tree(old);  // what stays is taken away by the next remove_abandoned
  return {};
}

Status PendingStep::publish(const Manifest& manifest) {
  for (int r = 0; r < options_.world_size.value; ++r)
    RETURN_IF_ERROR(remove_file(pending_ / ready_name(Rank{r})));
  for (const Part part : kParts) {
    if (manifest.of(part).empty()) RETURN_IF_ERROR(remove_tree(pending_ / to_text(part)));
  }
  RETURN_IF_ERROR(write_file(pending_ / kManifestName, manifest_text(manifest), Durability::synced));
  passed(CommitPoint::manifest_written);
  RETURN_IF_ERROR(put_in_place());
  passed(CommitPoint::published);
  RETURN_IF_ERROR(sync_directory(options_.directory));
  // Only now: a pending folder without a lease would count as alive for an hour.
  const Path place = options_.directory / step_folder_name(step_);
  for (const std::string_view name : {kLeaseName, kMakerLeaseName}) (void)remove_file(place / name);
  passed(CommitPoint::parent_synced);
  return {};
}

Status PendingStep::await_outcome(const StopToken& stop) {
  for (Duration pause = 1ms;; nap(pause)) {
    refresh(options_.directory);
    RETURN_IF_ERROR(error_of(Rank{0}));
    if (!folder_exists(pending_)) break;
    if (stop.stop_requested()) return cancelled("stopped while waiting for rank 0");
    if (deadline_.passed()) {
      return timeout("rank 0 did not commit it within {}", rounded_duration(options_.limit));
    }
  }
  const auto text = read_file(options_.directory / step_folder_name(step_) / kManifestName, kManifestLimit);
  if (text.ok() && is_manifest_of(*text, save_)) return {};
  return unavailable("rank 0 gave it up without saying why");
}

Status PendingStep::explain(const Status& error) const {
  if (options_.rank.value == 0 || error.code() != Code::not_found) return error;
  const Status reason = error_of(Rank{0});
  return reason.ok() ? error : reason;
}

void PendingStep::give_up(const Status& error, const std::vector<ShardFile>& files) {
  // The note first: a rank whose files vanish looks for it. On a full disk it fits only once the files are
  // gone.
  const Path note = pending_ / failed_name(options_.rank);
  bool is_told = write_file(note, failure_text(error)).ok();
  for (const ShardFile& file : files) (void)remove_file(pending_ / file.path);
  if (options_.rank.value == 0) {
    for (const Part part : kParts) (void)remove_tree(pending_ / to_text(part));
  }
  if (!is_told) is_told = write_file(note, failure_text(error)).ok();
  if (!is_told) (void)File::create(note);  // an empty note needs no block
}

}  // namespace stoker::checkpoint
