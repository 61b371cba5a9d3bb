#include "track/files/wandb_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "base/encode.h"
#include "base/hash.h"
#include "base/hashes/crc32.h"
#include "stoker/text.h"
#include "stoker/time.h"
#include "track/files/proto_text.h"

namespace stoker::track {
namespace {

constexpr std::string_view kHead("\x3a\x57\x26\x42\xe1\xbe\x00", 7);
constexpr std::size_t kBlockBytes = 32768;
constexpr std::size_t kFragmentHeadBytes = 7;
constexpr char kWhole = 1;  // kinds of fragments
constexpr char kFirst = 2;
constexpr char kMiddle = 3;
constexpr char kLast = 4;

// Fields of Record.
constexpr std::uint64_t kHistory = 2;
constexpr std::uint64_t kSummary = 3;
constexpr std::uint64_t kFiles = 6;
constexpr std::uint64_t kStats = 7;
constexpr std::uint64_t kMetric = 12;
constexpr std::uint64_t kRun = 17;
constexpr std::uint64_t kExit = 18;
constexpr std::uint64_t kHeader = 21;

void put_fragment(char type, std::string_view data, std::string* out) {
  std::string checked(1, type);
  checked += data;
  append_little_endian<std::uint32_t>(crc32(std::as_bytes(std::span(checked))), out);
  append_little_endian<std::uint16_t>(static_cast<std::uint16_t>(data.size()), out);
  *out += checked;
}

// `bytes` is the length of the file before `out`.
void put_log_record(std::string_view record, std::uint64_t bytes, std::string* out) {
  bool is_first = true;
  do {
    std::size_t left = kBlockBytes - (bytes + out->size()) % kBlockBytes;
    if (left < kFragmentHeadBytes) {
      out->append(left, '\0');
      left = kBlockBytes;
    }
    const std::string_view part = record.substr(0, left - kFragmentHeadBytes);
    record.remove_prefix(part.size());
    const bool is_last = record.empty();
    put_fragment(is_first ? (is_last ? kWhole : kFirst) : (is_last ? kLast : kMiddle), part, out);
    is_first = false;
  } while (!record.empty());
}

// JSON as Python writes it, with NaN and Infinity.
std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return std::string(digits.data(), end);
}

std::string json_value(const std::string& text) {
  double number = 0;
  return parse_number(text, &number) && std::isfinite(number) ? json_number(number) : json_string(text);
}

// An item of a history, summary or config: key and JSON.
void put_item(std::uint64_t field, std::string_view key, std::string_view json, std::string* out) {
  std::string item;
  put_bytes(1, key, &item);
  put_bytes(16, json, &item);
  put_bytes(field, item, out);
}

std::string timestamp(double time) {
  const double whole = std::floor(time);
  std::string message;
  put_integer(1, static_cast<std::uint64_t>(whole), &message);
  put_integer(2, static_cast<std::uint64_t>((time - whole) * 1e9), &message);
  return message;
}

/// Appends records to a text that continues a file.
class RecordWriter {
 public:
  RecordWriter(std::uint64_t bytes, std::string* out) : bytes_(bytes - out->size()), out_(out) {}
  void put(std::uint64_t kind, std::string_view message) {
    std::string record;
    put_bytes(kind, message, &record);
    put_log_record(record, bytes_, out_);
  }

 private:
  std::uint64_t bytes_;
  std::string* out_;
};

// The id of the run in W&B: short, the same for all attempts, and not that of the script's own run.
std::string short_id(const TrackedRun& run) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string id;
  for (const std::byte byte : sha256(run.name()))
    id += kDigits[std::to_integer<unsigned>(byte) % kDigits.size()];
  return id.substr(0, 12);
}

// "20251121_100311".
std::string compact_time(double unix_s) {
  const WallTime time{std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(unix_s))};
  std::string text = utc_text(time);  // 2025-11-21T10:03:11Z
  std::erase_if(text, [](char c) { return c == '-' || c == ':' || c == 'Z'; });
  std::replace(text.begin(), text.end(), 'T', '_');
  return text;
}

// Charts have the steps of the program, which may go back after a resume; W&B's own steps only grow.
std::string step_metric() {
  std::string metric;
  put_bytes(2, "*", &metric);
  put_bytes(4, "step", &metric);
  return metric;
}

// `number`: W&B's own step.
void put_row_end(std::int64_t step, double time, std::uint64_t number, double created, std::string* row) {
  put_item(1, "step", format("{}", step), row);
  put_item(1, "_timestamp", json_number(time), row);
  put_item(1, "_runtime", json_number(std::max(0.0, time - created)), row);
  put_item(1, "_step", format("{}", number), row);
  std::string own_step;
  put_integer(1, number, &own_step);
  put_bytes(2, own_step, row);
}

// The points of one call of wandb.log().
std::string history_row(std::span<const TrackedPoint> points, std::uint64_t number, double created) {
  std::string row;
  for (const TrackedPoint& point : points) put_item(1, name_with_rank(point), json_number(point.value), &row);
  put_row_end(*points.front().step, points.front().time, number, created, &row);
  return row;
}

std::string stats_row(std::span<const TrackedPoint> points) {
  std::string row;
  put_bytes(2, timestamp(points.front().time), &row);
  for (const TrackedPoint& point : points) put_item(3, point.name, json_number(point.value), &row);
  return row;
}

std::string digest_of(const record::LoggedImage& image) {
  std::string digits;
  for (const std::byte byte : sha256(image.bytes)) digits += format("{:02x}", std::to_integer<int>(byte));
  return digits;
}

// In the folder `files` of the run.
Path image_path(const TrackedMedia& media) {
  const Path path = file_path_of(media);
  const std::string digest = digest_of(*media.record.image()).substr(0, 20);
  return "media/images" / path.parent_path() /
         format("{}_{}{}", path.stem().string(), digest, path.extension().string());
}

std::string media_json(const TrackedMedia& media) {
  if (const record::LoggedImage* image = media.record.image()) {
    return format(
        R"({{"_type":"image-file","path":{},"sha256":"{}","size":{},"format":"{}","width":{},"height":{}}})",
        json_string(image_path(media).string()), digest_of(*image), image->bytes.size(), image->type,
        image->width, image->height);
  }
  const record::ValueHistogram& histogram = *media.record.histogram();
  std::string edges = json_number(histogram.edge(0));
  std::string counts;
  for (std::size_t bin = 0; bin < histogram.counts.size(); ++bin) {
    edges += "," + json_number(histogram.edge(bin + 1));
    counts += format("{}{}", bin > 0 ? "," : "", histogram.counts[bin]);
  }
  return format(R"({{"_type":"histogram","values":[{}],"bins":[{}]}})", counts, edges);
}

// A file that W&B sends.
std::string files_message(const TrackedMedia& media) {
  std::string item;
  put_bytes(1, image_path(media).string(), &item);
  std::string message;
  put_bytes(1, item, &message);
  return message;
}

std::string media_row(const TrackedMedia& media, const std::string& json, std::uint64_t number,
                      double created) {
  std::string row;
  put_item(1, media.name(), json, &row);
  put_row_end(media.record.step, media.record.time, number, created, &row);
  return row;
}

bool belongs_to(const TrackedPoint& first, const TrackedPoint& point) {
  const bool is_same = first.attempt == point.attempt && first.rank == point.rank && first.step == point.step;
  return is_same && (first.rank || first.time == point.time);
}

// The points that follow `begin` and fit in one row, in which a name occurs once.
std::size_t row_length(std::span<const TrackedPoint> points) {
  std::set<std::string_view> names;
  std::size_t length = 0;
  while (length < points.size() && belongs_to(points.front(), points[length]) &&
         names.insert(points[length].name).second)
    ++length;
  return length;
}

}  // namespace

Path WandbFormat::path(const TrackedRun& run) const {
  const std::string id = short_id(run);
  return Path("wandb") / format("offline-run-{}-{}", compact_time(run.folder.description().created), id) /
         format("run-{}.wandb", id);
}

void WandbFormat::head(const TrackedRun& run, std::string* out) {
  *out += kHead;
  RecordWriter writer(out->size(), out);
  std::string version;
  put_bytes(1, "0.28.0", &version);
  put_bytes(2, "0.14.0", &version);
  std::string header;
  put_bytes(1, version, &header);
  writer.put(kHeader, header);

  const record::RunDescription& what = run.folder.description();
  std::string config;
  for (const auto& [name, value] : run.params) put_item(1, name, json_value(value), &config);
  put_item(1, "stoker_run", json_string(run.name()), &config);
  std::string message;
  put_bytes(1, short_id(run), &message);
  put_bytes(3, project_, &message);
  put_bytes(4, config, &message);
  put_bytes(8, run.name(), &message);
  if (!what.hosts.empty()) put_bytes(13, what.hosts.front(), &message);
  put_bytes(17, timestamp(what.created), &message);
  writer.put(kRun, message);
  writer.put(kMetric, step_metric());
}

void WandbFormat::rows(const PointBatch& batch, FileEnd before, std::string* out) {
  const std::vector<TrackedPoint>& points = batch.points;
  RecordWriter writer(before.bytes + out->size(), out);
  std::map<std::string, std::string> last_values;
  std::size_t length = 0;
  for (std::size_t begin = 0; begin < points.size(); begin += length) {
    const std::span<const TrackedPoint> rest = std::span(points).subspan(begin);
    length = row_length(rest);
    const std::span<const TrackedPoint> row = rest.first(length);
    if (!row.front().rank) {
      writer.put(kStats, stats_row(row));
      continue;
    }
    if (row.front().step) writer.put(kHistory, history_row(row, before.points + begin, created_));
    for (const TrackedPoint& point : row) last_values[name_with_rank(point)] = json_number(point.value);
  }
  std::uint64_t number = before.points + points.size();
  for (const TrackedMedia& media : batch.media) {
    const std::string json = media_json(media);
    if (media.record.image() != nullptr) writer.put(kFiles, files_message(media));
    writer.put(kHistory, media_row(media, json, number++, created_));
    last_values[media.name()] = json;
  }
  std::string summary;
  for (const auto& [name, value] : last_values) put_item(1, name, value, &summary);
  if (!summary.empty()) writer.put(kSummary, summary);
}

std::vector<SideFile> WandbFormat::side_files(const PointBatch& batch, FileEnd) {
  std::vector<SideFile> files;
  for (const TrackedMedia& media : batch.media) {
    if (const record::LoggedImage* image = media.record.image())
      files.push_back({"files" / image_path(media), image->bytes});
  }
  return files;
}

void WandbFormat::tail(const TrackedRun& run, FileEnd before, std::string* out) {
  const double seconds = std::max(0.0, run.state.ended - run.folder.description().created);
  std::string message;
  put_integer(1, static_cast<std::uint64_t>(std::max(0, run.state.exit_code.value_or(1))), &message);
  put_integer(2, static_cast<std::uint64_t>(seconds), &message);
  RecordWriter(before.bytes + out->size(), out).put(kExit, message);
}

}  // namespace stoker::track
