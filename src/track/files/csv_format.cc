#include "track/files/csv_format.h"

#include "record/points/points.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

const Path kImages = "images";

// RFC 4180.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

void append_row(const TrackedPoint& point, std::string* out) {
  *out += format("{},{},", point.attempt, point.rank ? format("{}", *point.rank) : "");
  const std::string name = csv_cell(point.name);
  record::append_point({.time = point.time, .step = point.step, .value = point.value, .metric = name}, out);
  out->back() = ',';
  *out += '\n';
}

}  // namespace

Path CsvFormat::path(const TrackedRun&) const { return "points.csv"; }

void CsvFormat::head(const TrackedRun&, std::string* out) {
  *out += format("attempt,rank,{},file\n", record::kPointHeader);
}

void CsvFormat::rows(const PointBatch& batch, FileEnd, std::string* out) {
  for (const TrackedPoint& point : batch.points) append_row(point, out);
  for (const TrackedMedia& media : batch.media) {
    for (const TrackedPoint& point : points_of(media)) append_row(point, out);
    if (media.record.image() == nullptr) continue;
    *out += format("{},{},{:.6f},{},,{},{}\n", media.attempt, media.rank, media.record.time,
                   media.record.step, csv_cell(media.record.name), (kImages / file_path_of(media)).string());
  }
}

std::vector<SideFile> CsvFormat::side_files(const PointBatch& batch, FileEnd) {
  std::vector<SideFile> files;
  for (const TrackedMedia& media : batch.media) {
    if (const record::LoggedImage* image = media.record.image())
      files.push_back({kImages / file_path_of(media), image->bytes});
  }
  return files;
}

void CsvFormat::tail(const TrackedRun&, FileEnd, std::string*) {}

}  // namespace stoker::track
