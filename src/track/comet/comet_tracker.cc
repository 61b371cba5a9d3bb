// Protocol of an archive:
//   1. append messages and files to its folder, each batch once (FileTracker)
//   2. write the archive from the folder
//   3. replace the state, in which the archive is closed
//   4. remove the folder
// A process that is killed between 2 and 3 leaves an open archive. The next one appends to its folder, and
// replaces the archive.
#include "track/comet/comet_tracker.h"

#include <optional>

#include "base/file.h"
#include "stoker/text.h"
#include "track/comet/comet_format.h"
#include "track/comet/folder_zip.h"
#include "track/files/file_tracker.h"

namespace stoker::track {
namespace {

// Values of the state.
constexpr std::string_view kArchive = "archive";  // number of the last one
constexpr std::string_view kIsOpen = "is_open";
constexpr std::string_view kFiles = "files";  // of the open archive
constexpr std::string_view kFileBytes = "file_bytes";
constexpr std::string_view kMessageBytes = "bytes";  // set by FileTracker
constexpr std::string_view kRunState = "state";      // of the run, in the last archive

// A zip archive has at most 65 535 files and 4 GiB, and a batch adds less than kBatch files.
constexpr std::uint64_t kMostArchiveBytes = 256u << 20;
constexpr std::uint64_t kMostArchiveFiles = 20'000;
constexpr std::size_t kBatch = 20'000;

std::uint64_t number_in(const TrackState& state, std::string_view key) {
  std::uint64_t number = 0;
  return parse_number(state.value(key), &number) ? number : 0;
}

void set(TrackState& state, std::string_view key, const std::string& value) {
  state.values.insert_or_assign(std::string(key), value);
}

// A full disk or a slow file system may recover.
Status to_be_retried(const Status& status) {
  return status.ok() || status.code() == Code::no_space ? status : unavailable("{}", status.message());
}

// Of processes that were killed while they wrote a file.
void remove_pending_files(const Path& folder) {
  const auto names = list_directory(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name.ends_with(".tmp")) (void)remove_file(folder / name);
  }
}

class CometTracker final : public Tracker {
 public:
  CometTracker(Path folder, std::string project) : folder_(std::move(folder)), project_(std::move(project)) {}

  Status begin(const TrackedRun& run, TrackState& state) override;
  Status deliver(const PointBatch& batch, bool is_repeated, TrackState& state) override;
  Status end(const TrackedRun& run, TrackState& state) override;
  void clean_up(const TrackState& state) override;
  std::size_t batch_limit() const override { return kBatch; }
  bool needs_pending() const override { return false; }

 private:
  Path archive(std::uint64_t number) const { return folder_ / comet_archive_name(*run_, number); }
  Status open(std::uint64_t number, TrackState& state);
  Status close(TrackState& state);

  Path folder_;
  std::string project_;
  std::optional<TrackedRun> run_;
  std::unique_ptr<FileTracker> files_;  ///< of the open archive
};

Status CometTracker::begin(const TrackedRun& run, TrackState& state) {
  run_ = run;
  const std::uint64_t number = number_in(state, kArchive);
  if (number == 0) return open(1, state);
  clean_up(state);
  if (state.value(kIsOpen).empty()) return {};
  if (!path_exists(archive(number) / "messages.json")) {
    // A folder that was removed: the run is written from the beginning.
    state = TrackState();
    return open(1, state);
  }
  files_ = std::make_unique<FileTracker>(folder_, std::make_unique<CometFormat>(number));
  return files_->begin(run, state);
}

Status CometTracker::open(std::uint64_t number, TrackState& state) {
  STOKER_RETURN_IF_ERROR(remove_tree(archive(number)));  // of a killed process
  TrackState fresh;
  fresh.delivered = state.delivered;
  auto files = std::make_unique<FileTracker>(folder_, std::make_unique<CometFormat>(number));
  STOKER_RETURN_IF_ERROR(files->begin(*run_, fresh));
  files_ = std::move(files);
  for (const auto& [key, value] : fresh.values) set(state, key, value);
  set(state, kArchive, format("{}", number));
  set(state, kIsOpen, "yes");
  set(state, kFiles, "0");
  set(state, kFileBytes, "0");
  return {};
}

Status CometTracker::deliver(const PointBatch& batch, bool is_repeated, TrackState& state) {
  if (!files_) STOKER_RETURN_IF_ERROR(to_be_retried(open(number_in(state, kArchive) + 1, state)));
  const std::uint64_t bytes_before = number_in(state, kMessageBytes);
  if (bytes_before + number_in(state, kFileBytes) >= kMostArchiveBytes ||
      number_in(state, kFiles) >= kMostArchiveFiles) {
    clean_up(state);
    STOKER_RETURN_IF_ERROR(close(state));
    STOKER_RETURN_IF_ERROR(to_be_retried(open(number_in(state, kArchive) + 1, state)));
  }
  STOKER_RETURN_IF_ERROR(files_->deliver(batch, is_repeated, state));
  set(state, kFiles, format("{}", number_in(state, kFiles) + batch.media.size()));
  set(state, kFileBytes, format("{}", number_in(state, kFileBytes) + 64 * batch.media_weight));
  return {};
}

Status CometTracker::end(const TrackedRun& run, TrackState& state) {
  run_ = run;
  const std::string run_state(record::to_text(run.state.state));
  if (!files_ && run.has_ended() && state.value(kRunState) != run_state)
    STOKER_RETURN_IF_ERROR(to_be_retried(open(number_in(state, kArchive) + 1, state)));
  if (!files_) return {};
  STOKER_RETURN_IF_ERROR(files_->end(run, state));
  STOKER_RETURN_IF_ERROR(close(state));
  if (run.has_ended()) set(state, kRunState, run_state);
  return {};
}

Status CometTracker::close(TrackState& state) {
  const std::uint64_t number = number_in(state, kArchive);
  const Path place = archive(number);
  remove_pending_files(place);
  const std::string experiment = comet_experiment_json(*run_, project_, number);
  Status status = write_file(place / "experiment.json", experiment);
  if (status.ok()) status = zip_folder(place, place.string() + ".zip");
  STOKER_RETURN_IF_ERROR(to_be_retried(status));
  state.values.erase(std::string(kIsOpen));
  files_.reset();
  return {};
}

// Of the last archive, and of that before, which a full archive may have left.
void CometTracker::clean_up(const TrackState& state) {
  const std::uint64_t number = number_in(state, kArchive);
  if (number > 0 && state.value(kIsOpen).empty()) (void)remove_tree(archive(number));
  if (number > 1) (void)remove_tree(archive(number - 1));
}

}  // namespace

std::unique_ptr<Tracker> make_comet_tracker(Path folder, std::string project) {
  return std::make_unique<CometTracker>(std::move(folder), std::move(project));
}

}  // namespace stoker::track
