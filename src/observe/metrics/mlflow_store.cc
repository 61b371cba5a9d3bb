#include "observe/metrics/mlflow_store.h"

#include <algorithm>
#include <optional>
#include <sys/stat.h>
#include <utility>

#include "base/file.h"

namespace stoker::observe {
namespace {

constexpr std::size_t kMostRuns = 256;
constexpr std::size_t kMostMetrics = 2000;  // of a run
constexpr std::size_t kMostExperiments = 1000;
constexpr std::uint64_t kMostBytes = 8u << 20;  // of a metric in one turn
constexpr int kDepth = 8;                       // "a/b/c" is a file c in folders

double changed_at(const Path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return 0;
  return static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
}

bool is_run_id(std::string_view name) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() == 32 && std::all_of(name.begin(), name.end(), is_hex);
}

std::string short_text_of(const Path& file) {
  const auto text = read_file(file, 64_KiB);
  return text.ok() ? std::string(trim(*text)) : "";
}

// Unix seconds, from the line "start_time: 1763719411520" of meta.yaml.
double start_of(const Path& run) {
  const std::string text = short_text_of(run / "meta.yaml");
  for (const std::string_view line : split(text, '\n')) {
    constexpr std::string_view kKey = "start_time:";
    double milliseconds = 0;
    if (line.starts_with(kKey) && parse_number(trim(line.substr(kKey.size())), &milliseconds))
      return milliseconds / 1000;
  }
  return 0;
}

// "1763719411520 0.25 12", by newer versions with the name of a dataset or model behind it.
std::optional<record::PointLine> parse_value(std::string_view line) {
  const std::vector<std::string_view> words = split(line, ' ');
  std::int64_t milliseconds = 0;
  std::int64_t step = 0;
  record::PointLine point{.time = 0, .step = 0, .value = 0, .metric = {}};
  const bool is_valid = words.size() >= 2 && parse_number(words[0], &milliseconds) &&
                        parse_number(words[1], &point.value) &&
                        (words.size() == 2 || parse_number(words[2], &step));
  if (!is_valid || step < 0) return std::nullopt;
  point.time = static_cast<double>(std::max<std::int64_t>(0, milliseconds)) / 1000;
  point.step = step;
  return point;
}

}  // namespace

Path mlflow_store_folder(std::string_view uri, const Path& working_directory) {
  constexpr std::string_view kFile = "file:";
  if (uri.empty()) return working_directory / "mlruns";
  if (uri.starts_with(kFile)) {
    uri.remove_prefix(kFile.size());
    if (uri.starts_with("//")) uri.remove_prefix(2);
  }
  return uri.find("://") == std::string_view::npos ? working_directory / uri : Path();
}

bool MlflowStore::poll(const PointSink& sink) {
  if (options_.folder.empty()) return false;
  find_runs();
  bool has_new = false;
  for (Run& run : runs_) has_new |= read_folder(run, "", kDepth, sink);
  return has_new;
}

void MlflowStore::find_runs() {
  const auto experiments = list_directory(options_.folder);
  if (!experiments.ok()) return;
  std::vector<std::pair<double, Path>> found;
  for (std::size_t i = 0; i < std::min(experiments->size(), kMostExperiments); ++i) {
    const Path experiment = options_.folder / (*experiments)[i];
    const auto names = list_directory(experiment);
    if (!names.ok()) continue;
    for (const std::string& id : *names) {
      if (is_run_id(id) && !known_.contains(id) && is_wanted(experiment / id, id))
        found.emplace_back(start_of(experiment / id), experiment / id);
    }
  }
  std::sort(found.begin(), found.end());
  for (const auto& [start, folder] : found) {
    if (runs_.size() == kMostRuns) return;
    const std::string name = short_text_of(folder / "tags/mlflow.runName");
    const std::string shown = printable(name.empty() ? folder.filename().string() : name);
    runs_.push_back({.folder = folder,
                     .prefix = runs_.empty() ? "" : shown + "/",
                     .since = start < options_.since ? options_.since : 0,
                     .offsets = {}});
  }
}

// MLflow writes the tags last: a run without them may get them.
bool MlflowStore::is_wanted(const Path& run, const std::string& id) {
  const std::string name = short_text_of(run / "tags" / kMlflowTag);
  const bool is_ours = id == options_.run_id || (!name.empty() && name == options_.name);
  if (is_ours || !name.empty() || changed_at(run) < options_.since) known_.insert(id);
  return is_ours;
}

// `name`: of the folder of metrics, as a part of their names.
bool MlflowStore::read_folder(Run& run, const std::string& name, int depth, const PointSink& sink) {
  const auto entries = list_directory(run.folder / "metrics" / name);
  if (!entries.ok()) return false;
  bool has_new = false;
  for (const std::string& entry : *entries) {
    const std::string inner = name.empty() ? entry : format("{}/{}", name, entry);
    if (!folder_exists(run.folder / "metrics" / inner)) {
      has_new |= read_metric(run, inner, sink);
    } else if (depth > 0) {
      has_new |= read_folder(run, inner, depth - 1, sink);
    }
  }
  return has_new;
}

bool MlflowStore::read_metric(Run& run, const std::string& name, const PointSink& sink) {
  if (!run.offsets.contains(name) && run.offsets.size() == kMostMetrics) return false;
  std::uint64_t& offset = run.offsets[name];
  const auto file = File::open_regular(run.folder / "metrics" / name);
  if (!file.ok()) return false;
  const auto size = file->size();
  if (!size.ok() || *size <= offset) return false;
  const auto bytes = file->read_available(offset, std::min(kMostBytes, *size - offset));
  if (!bytes.ok()) return false;
  const std::size_t end = bytes->rfind('\n') + 1;  // 0 without a whole line
  const std::string metric = run.prefix + name;
  for (const std::string_view line : split(std::string_view(*bytes).substr(0, end), '\n')) {
    auto point = parse_value(line);
    // The first value may have the millisecond in which the rank started.
    if (!point || point->time + 0.001 < run.since) continue;
    point->metric = metric;
    sink(*point);
  }
  offset += end;
  return end > 0;
}

}  // namespace stoker::observe
