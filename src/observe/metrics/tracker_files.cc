#include "observe/metrics/tracker_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "record/lines.h"

namespace stoker::observe {
namespace {

constexpr std::string_view kEvents = "events.out.tfevents.";
constexpr std::string_view kWandb = ".wandb";
// Of one file in one turn; the rest follows in the next ones.
constexpr std::uint64_t kMaxTurn = 8u << 20;
constexpr std::size_t kMaxFiles = 256;
constexpr std::size_t kMaxNames = 2000;
constexpr int kClosedFilesEvery = 5;  // polls, for files that no process keeps open

std::optional<struct stat> stat_of(const Path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info;
}

double modified(const struct stat& info) {
  return static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
}

// The process in "events.out.tfevents.1763719411.node1.4711.0", or -1.
std::int64_t process_of(std::string_view name) {
  const std::vector<std::string_view> parts = split(name, '.');
  std::int64_t pid = -1;
  return parts.size() >= 7 && parse_number(parts[parts.size() - 2], &pid) ? pid : -1;
}

}  // namespace

TrackerFiles::TrackerFiles(TrackerOptions options)
    : options_(std::move(options)),
      tensorboard_(options_.attempt / record::point_file_name(options_.rank, "tensorboard")),
      lightning_(options_.attempt / record::point_file_name(options_.rank, "lightning")),
      wandb_(options_.attempt / record::point_file_name(options_.rank, "wandb")),
      mlflow_(options_.attempt / record::point_file_name(options_.rank, "mlflow")),
      mlflow_store_({.folder = options_.mlflow_folder,
                     .name = options_.mlflow_name,
                     .run_id = options_.mlflow_run,
                     .since = options_.since}) {}

std::vector<std::string> TrackerFiles::poll(const std::vector<pid_t>& processes) {
  for (const pid_t process : processes) find_open_files(process);
  for (auto& [id, file] : followed_) read_followed(file);
  if (++polls_ % kClosedFilesEvery == 0) {
    (void)read_mlflow();
    if (options_.rank == 0) read_lightning();
  }
  return end_turn();
}

std::vector<std::string> TrackerFiles::finish() {
  find_finished_wandb_files();
  const bool has_events = std::any_of(followed_.begin(), followed_.end(),
                                      [](const auto& entry) { return !entry.second.is_wandb; });
  if (!has_events) {
    for (const Path& folder : {options_.tensorboard_folder, options_.working_directory / "runs",
                               options_.working_directory / "lightning_logs"})
      if (!folder.empty()) find_finished_files(folder, 2);
  }
  for (auto& [id, file] : followed_) {
    for (std::uint64_t before = file.offset + 1; before != file.offset;) {
      before = file.offset;
      read_followed(file);
    }
  }
  while (read_mlflow()) {
  }
  if (options_.rank == 0) read_lightning();
  return end_turn();
}

std::vector<std::string> TrackerFiles::end_turn() {
  tensorboard_.flush();
  lightning_.flush();
  wandb_.flush();
  mlflow_.flush();
  return std::exchange(problems_, {});
}

void TrackerFiles::find_open_files(pid_t process) {
  const Path folder = options_.proc / std::to_string(process) / "fd";
  processes_.insert(process);
  const auto names = list_directory(folder);
  if (!names.ok()) return;  // it has ended
  for (const std::string& name : *names) {
    std::array<char, 4096> target;
    const ssize_t size = ::readlink((folder / name).c_str(), target.data(), target.size());
    if (size <= 0) continue;
    const Path path(std::string_view(target.data(), static_cast<std::size_t>(size)));
    // The link also leads to files of a container.
    const std::string file = path.filename().string();
    if (file.starts_with(kEvents) || file.ends_with(kWandb)) follow(folder / name, path);
  }
}

// Event files of processes that ended between two polls. Folders of runs are skipped: an array may have
// 100 000 tasks in one, and the folder of this run is searched by its name.
void TrackerFiles::find_finished_files(const Path& folder, int depth) {
  const auto names = list_directory(folder);
  if (!names.ok()) return;
  for (std::size_t i = names->size(); i > 0 && i + kMaxNames > names->size(); --i) {
    const std::string& name = (*names)[i - 1];
    if (name.starts_with(kEvents)) {
      const auto info = stat_of(folder / name);
      const bool is_ours = processes_.contains(static_cast<pid_t>(process_of(name)));
      if (info && is_ours && modified(*info) >= options_.since) follow(folder / name, folder / name);
    } else if (depth > 0 && folder_exists(folder / name) && !path_exists(folder / name / "run.json")) {
      find_finished_files(folder / name, depth - 1);
    }
  }
}

// "<WANDB_DIR>/wandb/offline-run-20261127_153346-<id>/run-<id>.wandb"
void TrackerFiles::find_finished_wandb_files() {
  if (options_.wandb_folder.empty() || options_.wandb_run.empty()) return;
  const auto names = list_directory(options_.wandb_folder / "wandb");
  if (!names.ok()) return;
  const std::string file = format("run-{}{}", options_.wandb_run, kWandb);
  for (const std::string& name : *names) {
    const Path path = options_.wandb_folder / "wandb" / name / file;
    const auto info = name.ends_with("-" + options_.wandb_run) ? stat_of(path) : std::nullopt;
    if (info && modified(*info) >= options_.since) follow(path, path);
  }
}

void TrackerFiles::follow(const Path& opened, const Path& shown) {
  const auto info = stat_of(opened);
  if (!info || followed_.size() == kMaxFiles) return;
  const FileId id{info->st_dev, info->st_ino};
  if (followed_.contains(id)) return;
  auto file = File::open_regular(opened);
  if (!file.ok()) return;
  Followed& followed = followed_[id];
  followed.file = *std::move(file);
  followed.name = printable(shown.filename().string());
  followed.is_wandb = followed.name.ends_with(kWandb);
  if (!followed.is_wandb) followed.prefix = prefix_of(shown.parent_path());
}

// Keras and many scripts write the same names to `train` and `validation`.
std::string TrackerFiles::prefix_of(const Path& folder) {
  if (const auto known = prefixes_.find(folder); known != prefixes_.end()) return known->second;
  constexpr std::array kParts = {"train", "validation", "val", "eval", "test"};
  const std::string name = printable(folder.filename().string());
  const bool is_part = std::find(kParts.begin(), kParts.end(), name) != kParts.end();
  const std::string prefix = is_part || !prefixes_.empty() ? name + "/" : "";
  return prefixes_.emplace(folder, prefix).first->second;
}

void TrackerFiles::read_followed(Followed& file) {
  const auto size = file.file.size();
  if (!size.ok()) return;
  const std::uint64_t end = std::min(*size, file.offset + kMaxTurn);
  while (file.offset < end) {
    std::string piece(std::min<std::uint64_t>(256 * 1024, end - file.offset), '\0');
    if (!file.file.read_at(file.offset, std::as_writable_bytes(std::span(piece))).ok()) return;
    file.offset += piece.size();
    const Status status =
        file.is_wandb ? file.wandb.feed(piece, [&](const record::PointLine& point) { wandb_.add(point); })
                      : file.events.feed(piece, [&](record::PointLine point) {
                          const std::string name = file.prefix + std::string(point.metric);
                          point.metric = name;
                          if (record::check_metric_name(name).ok()) tensorboard_.add(point);
                        });
    if (!status.ok())
      problems_.push_back(format("{}: {}; its later metrics are not shown", file.name, status.message()));
  }
}

bool TrackerFiles::read_mlflow() {
  return mlflow_store_.poll([&](const record::PointLine& point) {
    if (record::check_metric_name(point.metric).ok()) mlflow_.add(point);
  });
}

void TrackerFiles::read_lightning() {
  const Path logs = options_.working_directory / "lightning_logs";
  const auto names = list_directory(logs);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const Path path = logs / name / "metrics.csv";
    const auto info = name.starts_with("version_") ? stat_of(path) : std::nullopt;
    if (!info || modified(*info) < options_.since || csvs_.size() == kMaxFiles) continue;
    CsvFile& csv = csvs_[path];
    if (modified(*info) == csv.changed) continue;
    csv.changed = modified(*info);
    read_csv(path, csv);
  }
}

// Lightning writes the whole file again when a metric is new: with a new header, the known rows come first.
void TrackerFiles::read_csv(const Path& path, CsvFile& csv) {
  const auto text = read_file(path, 256_MiB);
  if (!text.ok()) return;
  std::vector<std::string> columns;
  std::uint64_t row = 0;
  record::visit_text(*text, 64 * 1024, [&](std::string_view line, record::LineKind kind) {
    if (kind != record::LineKind::whole) return true;
    const std::vector<std::string_view> cells = split(line, ',');
    if (columns.empty()) {
      columns.assign(cells.begin(), cells.end());
      return true;
    }
    if (row++ < csv.rows || cells.size() != columns.size()) return true;
    const auto step = std::find(columns.begin(), columns.end(), "step") - columns.begin();
    record::PointLine point{.time = csv.changed, .step = 0, .value = 0, .metric = {}};
    std::int64_t number = 0;
    if (static_cast<std::size_t>(step) == columns.size() ||
        !parse_number(cells[static_cast<std::size_t>(step)], &number) || number < 0)
      return true;
    point.step = number;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      point.metric = columns[i];
      const bool is_value = static_cast<std::ptrdiff_t>(i) != step && parse_number(cells[i], &point.value);
      if (is_value && record::check_metric_name(columns[i]).ok()) lightning_.add(point);
    }
    return true;
  });
  csv.rows = row;
}

}  // namespace stoker::observe
