#include "track/run/point_reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

using Source = PointReader::Source;

constexpr std::uint64_t kPiece = 64 * 1024;
constexpr std::uint64_t kLongestRow = 1u << 20;
constexpr std::uint64_t kTailForNames = 4u << 20;
constexpr double kLargestStep = 9e15;
constexpr std::size_t kBytesPerPoint = 64;
constexpr std::size_t kLongestFolder = 100;

std::uint64_t longest_line(const Source& source) {
  return source.kind == Source::Kind::media ? record::kLongestMediaLine : kLongestRow;
}

std::size_t weight_of(const PointBatch& batch) { return batch.points.size() + batch.media_weight; }

// The number of "<stem>0003.csv".
std::optional<int> number_of(std::string_view name, std::string_view stem) {
  constexpr std::string_view kExtension = ".csv";
  if (!name.starts_with(stem) || !name.ends_with(kExtension)) return std::nullopt;
  name.remove_prefix(stem.size());
  name.remove_suffix(std::min(name.size(), kExtension.size()));
  std::int64_t number = 0;
  if (!parse_number(name, &number) || number < 0 || number >= 10'000'000) return std::nullopt;
  return static_cast<int>(number);
}

// Whether NaN is a value in this column of the trainer, and not the lack of one.
bool can_be_nan(std::string_view column) { return column == "loss" || column == "train_loss"; }

double cell_number(std::string_view cell) {
  double number = std::numeric_limits<double>::quiet_NaN();
  if (!cell.empty() && !parse_number(cell, &number)) return std::numeric_limits<double>::quiet_NaN();
  return number;
}

}  // namespace

std::string name_with_rank(const TrackedPoint& point) {
  return point.rank.value_or(0) == 0 ? point.name : format("rank{}/{}", *point.rank, point.name);
}

std::string TrackedMedia::name() const {
  return rank == 0 ? record.name : format("rank{}/{}", rank, record.name);
}

std::vector<TrackedPoint> points_of(const TrackedMedia& media) {
  std::vector<TrackedPoint> points;
  const record::ValueHistogram* histogram = media.record.histogram();
  if (histogram == nullptr) return points;
  const auto count = static_cast<double>(histogram->count());
  const auto add = [&](std::string_view what, double value) {
    points.push_back({.attempt = media.attempt,
                      .rank = media.rank,
                      .time = media.record.time,
                      .step = media.record.step,
                      .value = value,
                      .name = format("{}/{}", media.record.name, what)});
  };
  add("count", count);
  if (histogram->not_finite > 0) add("not_finite", static_cast<double>(histogram->not_finite));
  if (count == 0) return points;
  add("mean", histogram->sum / count);
  add("lowest", histogram->lowest);
  add("highest", histogram->highest);
  return points;
}

// The parts of a name are folders, as in trackers. A part with other characters has a hash of it.
Path file_path_of(const TrackedMedia& media) {
  Path path;
  const std::string name = media.name();
  for (const std::string_view part : split(name, '/')) {
    std::string folder;
    for (const char c : part.substr(0, kLongestFolder)) {
      const auto byte = static_cast<unsigned char>(c);
      folder += std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' ? c : '_';
    }
    if (folder.empty() || folder.front() == '.' || folder != part)
      folder =
          format("{}-{:08x}", folder.find_first_not_of('.') == std::string::npos ? "" : folder, crc32c(part));
    path /= folder;
  }
  const std::string_view extension = media.record.image()->type == "png" ? "png" : "jpg";
  return path / format("step-{:09}{}.{}", media.record.step,
                       media.attempt > 1 ? format("-attempt{}", media.attempt) : "", extension);
}

void PointReader::begin_pass(const Positions& done) {
  sources_.clear();
  current_ = 0;
  open_ = File();
  open_key_.clear();
  const auto attempts = run_.attempts();
  if (!attempts.ok()) return;
  for (const record::Attempt& attempt : *attempts) list_attempt(attempt);
  for (const Source& source : sources_) {
    if (!source.has_siblings || !has_old_names_.try_emplace(source.key, true).second) continue;
    if (const auto at = done.find(source.key); at != done.end()) read_old_names(source, at->second.offset);
  }
}

// Sources that take precedence precede the files of the same rank whose metrics they replace.
void PointReader::list_attempt(const record::Attempt& attempt) {
  const auto add = [&](const Path& path, Source::Kind kind, int number) -> Source& {
    const std::string key = format("attempts/{}/{}", attempt.number(), path.filename().string());
    return sources_.emplace_back(Source{key, path, attempt.number(), kind, number});
  };
  std::vector<record::PointFile> files = record::list_point_files(attempt);
  if (task_) std::erase_if(files, [&](const auto& file) { return file.rank != static_cast<int>(*task_); });
  std::stable_sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.source > b.source;
  });
  for (std::size_t i = 0; i < files.size(); ++i) {
    Source& source = add(files[i].path, Source::Kind::points, files[i].rank);
    source.origin = files[i].source;
    source.has_siblings = (i > 0 && files[i - 1].rank == files[i].rank) ||
                          (i + 1 < files.size() && files[i + 1].rank == files[i].rank);
  }
  for (const record::MediaFile& file : record::list_media_files(attempt)) {
    if (!task_ || file.rank == static_cast<int>(*task_)) add(file.path, Source::Kind::media, file.rank);
  }
  const auto names = list_directory(attempt.folder());
  if (!names.ok() || task_) return;
  for (const std::string& name : *names) {
    const Path path = attempt.folder() / name;
    if (name == attempt.epochs().filename()) add(path, Source::Kind::epochs, 0);
    if (const auto rank = number_of(name, "metrics-")) add(path, Source::Kind::steps, *rank);
    if (const auto node = number_of(name, "system-")) add(path, Source::Kind::samples, *node);
  }
}

// After a restart, the metrics of the part that was read before are known again.
void PointReader::read_old_names(const Source& source, std::uint64_t end) {
  const auto file = File::open_regular(source.path);
  if (!file.ok()) return;
  const std::uint64_t begin = end - std::min(end, kTailForNames);
  std::string text(end - begin, '\0');
  if (!file->read_at(begin, std::as_writable_bytes(std::span(text))).ok()) return;
  for (const std::string_view line : split(text, '\n')) {
    if (const auto point = record::parse_point(line)) (void)counts(source, point->metric);
  }
}

PointBatch PointReader::read(const Positions& done, std::size_t limit) {
  PointBatch batch;
  while (current_ < sources_.size() && weight_of(batch) < limit) {
    const Source& source = sources_[current_];
    const auto before = done.find(source.key);
    FilePosition at = before == done.end() ? FilePosition() : before->second;
    const FilePosition began = at;
    const bool has_more = read_source(source, std::numeric_limits<std::uint64_t>::max(), limit, at, batch);
    if (!(at == began)) batch.ends.insert_or_assign(source.key, at);
    if (!has_more) ++current_;
  }
  return batch;
}

PointBatch PointReader::read_again(const Positions& done, const Positions& ends) {
  PointBatch batch;
  for (const Source& source : sources_) {
    const auto end = ends.find(source.key);
    if (end == ends.end()) continue;
    const auto before = done.find(source.key);
    FilePosition at = before == done.end() ? FilePosition() : before->second;
    (void)read_source(source, end->second.offset, std::numeric_limits<std::size_t>::max(), at, batch);
  }
  batch.ends = ends;
  return batch;
}

// False at the end of the complete lines.
bool PointReader::read_source(const Source& source, std::uint64_t until, std::size_t limit, FilePosition& at,
                              PointBatch& batch) {
  if (open_key_ != source.key) {
    auto file = File::open_regular(source.path);
    if (!file.ok()) return false;
    open_ = *std::move(file);
    open_key_ = source.key;
  }
  std::string piece;
  std::uint64_t wanted = kPiece;
  for (;;) {
    const auto size = open_.size();
    const std::uint64_t end = size.ok() ? std::min(*size, until) : 0;
    if (end <= at.offset) return false;
    piece.resize(std::min(wanted, end - at.offset));
    if (!open_.read_at(at.offset, std::as_writable_bytes(std::span(piece))).ok()) return false;
    std::string_view rest = piece;
    for (std::size_t line_end = rest.find('\n'); line_end != std::string_view::npos;
         line_end = rest.find('\n')) {
      read_line(source, rest.substr(0, line_end), at, batch);
      at.offset += line_end + 1;
      rest.remove_prefix(line_end + 1);
      if (weight_of(batch) >= limit) return true;
    }
    const bool has_line = rest.size() < piece.size();
    if (!has_line && piece.size() < wanted) return false;
    if (!has_line && wanted == longest_line(source)) {
      ++batch.damaged;
      at.offset += piece.size();
    }
    wanted = has_line ? kPiece : longest_line(source);
  }
}

void PointReader::read_line(const Source& source, std::string_view line, FilePosition& at,
                            PointBatch& batch) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return;
  if (source.kind == Source::Kind::points) {
    read_point(source, line, batch);
  } else if (source.kind == Source::Kind::media) {
    read_media(source, line, batch);
  } else {
    read_row(source, line, at, batch);
  }
}

void PointReader::read_point(const Source& source, std::string_view line, PointBatch& batch) {
  if (line == record::kPointHeader) return;
  const auto point = record::parse_point(line);
  if (!point) {
    ++batch.damaged;
    return;
  }
  if (!counts(source, point->metric)) return;
  batch.points.push_back({.attempt = source.attempt,
                          .rank = task_ ? 0 : source.number,
                          .time = point->time > 0 ? point->time : run_.description().created,
                          .step = point->step,
                          .value = point->value,
                          .name = std::string(point->metric)});
}

void PointReader::read_media(const Source& source, std::string_view line, PointBatch& batch) {
  auto record = record::parse_media(line);
  if (!record) {
    ++batch.damaged;
    return;
  }
  batch.media_weight += 1 + line.size() / kBytesPerPoint;
  if (!(record->time > 0)) record->time = run_.description().created;
  batch.media.push_back({source.attempt, task_ ? 0 : source.number, *std::move(record)});
}

// Of a metric with several sources, only the one of the highest precedence counts.
bool PointReader::counts(const Source& source, std::string_view metric) {
  NamesOfRank& names = names_[{source.attempt, source.number}];
  const auto known = names.find(metric);
  if (known == names.end()) {
    names.emplace(metric, source.origin);
    return true;
  }
  known->second = std::max(known->second, source.origin);
  return known->second == source.origin;
}

// The names in the header. `end` is the end of its line or behind it.
const std::vector<std::string>& PointReader::columns_of(const Source& source, std::uint64_t end) {
  std::vector<std::string>& columns = columns_[source.key];
  if (!columns.empty()) return columns;
  std::string head(std::min(end, kLongestRow), '\0');
  if (!open_.read_at(0, std::as_writable_bytes(std::span(head))).ok()) return columns;
  for (const std::string_view name : split(std::string_view(head).substr(0, head.find('\n')), ','))
    columns.emplace_back(trim(name));
  return columns;
}

void PointReader::read_row(const Source& source, std::string_view line, FilePosition& at, PointBatch& batch) {
  const std::vector<std::string_view> cells = split(line, ',');
  if (at.offset == 0) return;  // the header
  const std::vector<std::string>& columns = columns_of(source, at.offset);
  if (cells.size() != columns.size()) {
    ++batch.damaged;
    return;
  }
  const double created = run_.description().created;
  const bool is_sample = source.kind == Source::Kind::samples;
  TrackedPoint point{
      .attempt = source.attempt, .rank = source.number, .time = created, .step = {}, .value = 0, .name = {}};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double number = cell_number(cells[i]);
    if (columns[i] == "time" && number > 0) point.time = number;
    if (columns[i] == "step" && number >= 0 && number < kLargestStep)
      point.step = static_cast<std::int64_t>(number);
  }
  if (is_sample) {
    if (point.time - at.sampled < kSampleInterval_s && point.time >= at.sampled) return;
    at.sampled = point.time;
    point.rank.reset();
    point.step = static_cast<std::int64_t>(std::max(0.0, point.time - created));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& column = columns[i];
    point.value = cell_number(cells[i]);
    const bool is_axis =
        column == "time" || column == "step" || (column == "epoch" && source.kind == Source::Kind::epochs);
    if (is_axis || (std::isnan(point.value) && !can_be_nan(column))) continue;
    point.name = is_sample ? format("system/node{}/{}", source.number, column) : column;
    batch.points.push_back(point);
  }
}

}  // namespace stoker::track
