// Protocol of a file:
//   1. write the images of a batch, whose names follow from their content
//   2. append the rows of the batch
//   3. replace the state, which has the new length of the file and the positions behind the batch
// A process that is killed between 2 and 3 leaves rows behind the stored length. The next one cuts them off,
// and writes them again. The tail of a run is behind the stored length, too.
#include "track/files/file_tracker.h"

#include "stoker/text.h"

namespace stoker::track {
namespace {

constexpr std::string_view kFile = "file";
constexpr std::string_view kBytes = "bytes";

// A full disk may be emptied: the batch is written again later.
Status retried(const Status& status) {
  return status.ok() || status.code() == Code::no_space
             ? status
             : Status(Code::unavailable, std::string(status.message()));
}

}  // namespace

Status FileTracker::begin(const TrackedRun& run, TrackState& state) {
  const Path path = folder_ / format_->path(run);
  const bool is_known = path_exists(path) && state.value(kFile) == path.filename().string();
  // A file that was removed is written from the beginning.
  if (!is_known) state = TrackState();
  STOKER_RETURN_IF_ERROR(make_directories(path.parent_path()));
  STOKER_ASSIGN_OR_RETURN(file, File::open_append(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::uint64_t bytes = 0;
  if (is_known && (!parse_number(state.value(kBytes), &bytes) || size < bytes)) {
    return corrupt("{}: has {} bytes, expected at least {}: another program changed it",
                   printable(path.string()), size, state.value(kBytes))
        .cure("rm {}      (it is written again)", shell_quote(path.string()));
  }
  file_ = std::move(file);
  place_ = path.parent_path();
  written_ = {bytes, state.delivered};
  STOKER_RETURN_IF_ERROR(file_.truncate(bytes));
  if (is_known) return {};
  std::string head;
  format_->head(run, &head);
  STOKER_RETURN_IF_ERROR(append(head));
  written_.bytes = head.size();
  state.values.insert_or_assign(std::string(kFile), path.filename().string());
  state.values.insert_or_assign(std::string(kBytes), format("{}", written_.bytes));
  return {};
}

Status FileTracker::deliver(const PointBatch& batch, bool, TrackState& state) {
  for (const SideFile& file : format_->side_files(batch, written_)) {
    const Path path = place_ / file.path;
    STOKER_RETURN_IF_ERROR(retried(make_directories(path.parent_path())));
    STOKER_RETURN_IF_ERROR(retried(write_file(path, file.bytes)));
  }
  std::string rows;
  format_->rows(batch, written_, &rows);
  STOKER_RETURN_IF_ERROR(append(rows));
  written_.bytes += rows.size();
  written_.points += batch.size();
  state.values.insert_or_assign(std::string(kBytes), format("{}", written_.bytes));
  return {};
}

Status FileTracker::end(const TrackedRun& run, TrackState&) {
  if (!run.has_ended()) return {};
  std::string tail;
  format_->tail(run, written_, &tail);
  return append(tail);
}

// Nothing of a failed write stays.
Status FileTracker::append(const std::string& bytes) {
  const Status written = bytes.empty() ? Status() : file_.write(bytes);
  if (written.ok()) return {};
  (void)file_.truncate(written_.bytes);
  return retried(written);
}

}  // namespace stoker::track
