#include "record/points/points.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/file.h"
#include "base/json/json.h"
#include "record/lines.h"

namespace stoker::record {

namespace {

constexpr std::string_view kStem = "points-";
constexpr std::string_view kExtension = ".csv";
constexpr std::size_t kLongestPointLine = 1024;
constexpr std::uint64_t kTailOfFirst = 128 * 1024;
constexpr std::uint64_t kTailOfOthers = 16 * 1024;
constexpr double kLargestStep = 9e15;

template <typename Number>
void append_digits(Number value, std::string* out) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  STOKER_CHECK(error == std::errc());
  out->append(digits.data(), end);
}

// Microseconds are enough, and faster to print than the shortest double.
void append_time(double unix_s, std::string* out) {
  const auto micros = static_cast<std::uint64_t>(unix_s * 1e6);
  append_digits(micros / 1'000'000, out);
  std::array<char, 7> fraction = {'.', '0', '0', '0', '0', '0', '0'};
  std::uint64_t rest = micros % 1'000'000;
  for (std::size_t i = fraction.size() - 1; i > 0; --i, rest /= 10)
    fraction[i] = static_cast<char>('0' + rest % 10);
  out->append(fraction.data(), fraction.size());
}

bool parse_step(std::string_view cell, std::optional<std::int64_t>* step) {
  if (cell.empty()) return true;
  std::int64_t whole = 0;
  if (parse_number(cell, &whole)) {
    if (whole < 0) return false;
    *step = whole;
    return true;
  }
  // awk prints large numbers as 1e+06.
  double number = 0;
  if (!parse_number(cell, &number) || !(number >= 0) || number > kLargestStep || std::floor(number) != number)
    return false;
  *step = static_cast<std::int64_t>(number);
  return true;
}

// Merged in this order: a rank's processes by their number, then the other writers by name.
std::pair<std::int64_t, std::string_view> order_of(const PointFile& file) {
  std::int64_t number = 0;
  if (file.writer.empty()) return {0, ""};
  if (parse_number(file.writer, &number) && number >= 0) return {number, ""};
  return {std::numeric_limits<std::int64_t>::max(), file.writer};
}

PointSource source_of(std::string_view writer) {
  if (writer == "log") return PointSource::log_lines;
  constexpr std::array kTrackers = {"tensorboard", "lightning", "wandb", "mlflow"};
  const bool is_tracker = std::find(kTrackers.begin(), kTrackers.end(), writer) != kTrackers.end();
  return is_tracker ? PointSource::tracker : PointSource::program;
}

/// Merges lines of several files.
class PointMerger {
 public:
  explicit PointMerger(const PointLimits& limits) : limits_(limits) {}

  void add(const PointLine& line, PointSource source) {
    Collected* found = find(line.metric);
    if (found == nullptr) return;
    if (source < found->source) return;
    if (source > found->source) *found = {source, {}, {}};
    const Point point{line.step.value_or(0), line.value, line.time};
    if (!line.step) {
      found->summary = point;
      return;
    }
    if (++points_ > limits_.points) {
      result_.truncated = true;
      return;
    }
    found->points.push_back(point);
  }
  void add_damaged() { ++result_.damaged; }

  RankPoints finish() && {
    for (auto& [name, each] : collected_) {
      if (each.summary) result_.summary.emplace(name, *each.summary);
      if (!each.points.empty()) result_.metrics.emplace(name, last_of_each_step(std::move(each.points)));
    }
    return std::move(result_);
  }

 private:
  struct Collected {
    PointSource source = PointSource::log_lines;
    std::vector<Point> points;
    std::optional<Point> summary;
  };

  Collected* find(std::string_view name) {
    auto at = collected_.find(name);
    if (at != collected_.end()) return &at->second;
    if (collected_.size() == limits_.metrics) {
      result_.truncated = true;
      return nullptr;
    }
    return &collected_.emplace(name, Collected()).first->second;
  }

  static std::vector<Point> last_of_each_step(std::vector<Point> points) {
    const auto by_step = [](const Point& a, const Point& b) { return a.step < b.step; };
    if (!std::is_sorted(points.begin(), points.end(), by_step))
      std::stable_sort(points.begin(), points.end(), by_step);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (i + 1 < points.size() && points[i + 1].step == points[i].step) continue;
      points[kept++] = points[i];
    }
    points.resize(kept);
    return points;
  }

  PointLimits limits_;
  std::map<std::string, Collected, std::less<>> collected_;
  std::size_t points_ = 0;
  RankPoints result_;
};

void read_line(std::string_view line, LineKind kind, PointSource source, PointMerger& merger) {
  if (kind == LineKind::torn || line.empty() || line == kPointHeader) return;
  const auto point = kind == LineKind::whole ? parse_point(line) : std::nullopt;
  if (point) {
    merger.add(*point, source);
  } else {
    merger.add_damaged();
  }
}

void read_tail_of(const PointFile& file, std::uint64_t bytes, PointMerger& merger) {
  const auto opened = File::open_regular(file.path);
  if (!opened.ok()) return;
  const auto size = opened->size();
  if (!size.ok()) return;
  const std::uint64_t begin = *size - std::min(*size, bytes);
  std::string text(*size - begin, '\0');
  if (!opened->read_at(begin, std::as_writable_bytes(std::span(text))).ok()) return;
  std::string_view rest = text;
  if (begin > 0) rest.remove_prefix(std::min(rest.size(), rest.find('\n') + 1));
  visit_text(rest, kLongestPointLine, [&](std::string_view line, LineKind kind) {
    read_line(line, kind, file.source, merger);
    return true;
  });
}

}  // namespace

Status check_metric_name(std::string_view name) {
  if (name.empty()) return invalid("metric '': a name is required");
  if (name.size() > kLongestMetricName) {
    return invalid("metric '{}…': its name has {} bytes, at most {} are recorded",
                   printable(name.substr(0, 40)), name.size(), kLongestMetricName);
  }
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return invalid("metric '{}': its name contains a control character", printable(name));
  }
  return {};
}

void append_point(const PointLine& point, std::string* out) {
  if (point.time > 0 && point.time < kLargestStep) append_time(point.time, out);
  *out += ',';
  if (point.step) append_digits(*point.step, out);
  *out += ',';
  append_digits(point.value, out);
  *out += ',';
  *out += point.metric;
  *out += '\n';
}

std::optional<PointLine> parse_point(std::string_view line) {
  PointLine point;
  const std::size_t first = line.find(',');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = line.find(',', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::size_t third = line.find(',', second + 1);
  if (third == std::string_view::npos) return std::nullopt;
  const std::string_view time = line.substr(0, first);
  const std::string_view value = line.substr(second + 1, third - second - 1);
  if (!time.empty() && (!parse_number(time, &point.time) || !std::isfinite(point.time))) return std::nullopt;
  if (!parse_step(line.substr(first + 1, second - first - 1), &point.step)) return std::nullopt;
  if (!parse_number(value, &point.value)) return std::nullopt;
  point.metric = line.substr(third + 1);
  if (!check_metric_name(point.metric).ok()) return std::nullopt;
  return point;
}

void PointAppender::flush() {
  if (pending_.empty()) return;
  Status status;
  if (file_.fd() < 0) {
    auto file = File::open_append(path_);
    status = file.status();
    if (file.ok()) file_ = *std::move(file);
  }
  if (status.ok()) status = append_record(file_, pending_, mid_line_);
  if (!status.ok())
    dropped_ += static_cast<std::uint64_t>(std::count(pending_.begin(), pending_.end(), '\n'));
  pending_.clear();
}

std::optional<RankFileName> parse_rank_file(std::string_view name, std::string_view stem,
                                            std::string_view extension) {
  if (!name.starts_with(stem) || !name.ends_with(extension)) return std::nullopt;
  std::string_view middle = name.substr(stem.size(), name.size() - stem.size());
  middle.remove_suffix(std::min(middle.size(), extension.size()));
  const std::size_t dash = middle.find('-');
  std::int64_t rank = 0;
  if (!parse_number(middle.substr(0, dash), &rank) || rank < 0 || rank >= 10'000'000) return std::nullopt;
  RankFileName file{static_cast<int>(rank), ""};
  if (dash != std::string_view::npos) file.writer = middle.substr(dash + 1);
  return file;
}

std::string point_file_name(int rank, std::string_view writer) {
  return format("{}{:04}{}{}{}", kStem, rank, writer.empty() ? "" : "-", writer, kExtension);
}

std::vector<PointFile> list_point_files(const Attempt& attempt) {
  std::vector<PointFile> files;
  const auto names = list_directory(attempt.folder());
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    if (auto file = parse_rank_file(name, kStem, kExtension))
      files.push_back({attempt.folder() / name, file->rank, source_of(file->writer), file->writer});
  }
  std::sort(files.begin(), files.end(), [](const PointFile& a, const PointFile& b) {
    return a.rank != b.rank ? a.rank < b.rank : order_of(a) < order_of(b);
  });
  return files;
}

RankPoints read_points(std::span<const PointFile> files, const PointLimits& limits) {
  PointMerger merger(limits);
  for (const PointFile& file : files) {
    if (limits.tail_bytes < std::numeric_limits<std::uint64_t>::max()) {
      read_tail_of(file, limits.tail_bytes, merger);
      continue;
    }
    (void)visit_lines(file.path, kLongestPointLine, [&](std::string_view line, LineKind kind) {
      read_line(line, kind, file.source, merger);
      return true;
    });
  }
  return std::move(merger).finish();
}

void LastValues::add(const std::string& metric, const Point& last) {
  LastValue& value = values_[metric];
  value.step = std::max(value.step, last.step);
  // Both ignore NaN, which the mean keeps.
  value.lowest = value.ranks == 0 ? last.value : std::fmin(value.lowest, last.value);
  value.highest = value.ranks == 0 ? last.value : std::fmax(value.highest, last.value);
  value.mean = (value.mean * value.ranks + last.value) / (value.ranks + 1);
  ++value.ranks;
}

std::vector<LastValue> LastValues::finish() && {
  std::vector<LastValue> values;
  for (auto& [metric, value] : values_) {
    value.metric = metric;
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<LastValue> read_last_values(const Attempt& attempt, int ranks) {
  const std::vector<PointFile> files = list_point_files(attempt);
  LastValues all;
  int read = 0;
  for (std::size_t begin = 0; begin < files.size() && read < ranks; ++read) {
    std::size_t end = begin;
    while (end < files.size() && files[end].rank == files[begin].rank) ++end;
    const RankPoints points = read_points(std::span(files).subspan(begin, end - begin),
                                          {.tail_bytes = read == 0 ? kTailOfFirst : kTailOfOthers});
    for (const auto& [name, series] : points.metrics) all.add(name, series.back());
    begin = end;
  }
  return std::move(all).finish();
}

std::string json_of(std::span<const LastValue> values) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const LastValue& each : values) {
    object[each.metric] = {{"step", each.step},
                           {"mean", each.mean},
                           {"lowest", each.lowest},
                           {"highest", each.highest},
                           {"ranks", each.ranks}};
  }
  return json_text(object);
}

std::string json_of(const std::map<std::string, Point>& last_points) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [metric, last] : last_points)
    object[metric] = {{"step", last.step}, {"value", last.value}};
  return json_text(object);
}

std::string main_metric(std::span<const std::string> names) {
  for (const std::string_view wanted : {"loss", "train_loss", "train/loss", "training_loss"}) {
    if (const auto at = std::find(names.begin(), names.end(), wanted); at != names.end()) return *at;
  }
  const auto at = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return to_lower(name).find("loss") != std::string::npos;
  });
  return at == names.end() ? "" : *at;
}

}  // namespace stoker::record
