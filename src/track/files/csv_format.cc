#include "track/files/csv_format.h"

#include "record/points/points.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

// RFC 4180.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

Path CsvFormat::path(const TrackedRun&) const { return "points.csv"; }

void CsvFormat::head(const TrackedRun&, std::string* out) {
  *out += format("attempt,rank,{}\n", record::kPointHeader);
}

void CsvFormat::rows(const std::vector<TrackedPoint>& points, FileEnd, std::string* out) {
  for (const TrackedPoint& point : points) {
    *out += format("{},{},", point.attempt, point.rank ? format("{}", *point.rank) : "");
    const std::string name = csv_cell(point.name);
    record::append_point({.time = point.time, .step = point.step, .value = point.value, .metric = name}, out);
  }
}

void CsvFormat::tail(const TrackedRun&, FileEnd, std::string*) {}

}  // namespace stoker::track
