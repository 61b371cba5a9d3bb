#include "record/trace/trace_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "record/json.h"

namespace stoker::record {

namespace {

constexpr double kMaxUs = 1e17;  // about three thousand years

bool is_time(double us) { return std::isfinite(us) && us >= 0 && us <= kMaxUs; }

std::uint64_t natural_of(const Json& object, const char* key) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, integer_of(object, key)));
}

class TraceParser {
 public:
  void add_line(std::string_view line) {
    while (!line.empty() && (line.back() == ',' || line.back() == '\r')) line.remove_suffix(1);
    if (line.size() < 2) return;
    const Json event = parse_json<Json>(line);
    if (!event.is_object() || !is_time(number_of(event, "ts"))) return;
    const std::string kind = text_of(event, "ph"), category = text_of(event, "cat");
    if (kind == "X") {
      add_complete_event(event, category);
    } else if (category == "exchange") {
      add_async_event(event, kind);
    }
  }
  TraceFile finish() { return std::move(file_); }

 private:
  void add_complete_event(const Json& event, std::string_view category) {
    const double begin = number_of(event, "ts"), end = begin + number_of(event, "dur");
    if (!is_time(end) || end < begin) return;
    if (category == "phase") file_.phases.push_back({text_of(event, "name"), begin, end});
    const auto arguments = event.find("args");
    if (category != "step" || arguments == event.end() || !arguments->is_object()) return;
    file_.steps.push_back({natural_of(*arguments, "epoch"), natural_of(*arguments, "step"), begin, end});
  }
  void add_async_event(const Json& event, std::string_view kind) {
    const std::string id = text_of(event, "id");
    const double at = number_of(event, "ts");
    if (kind == "b") {
      begun_.insert_or_assign(id, TraceSpan{text_of(event, "name"), at, at});
    } else if (const auto found = begun_.find(id); kind == "e" && found != begun_.end()) {
      TraceSpan span = std::move(found->second);
      begun_.erase(found);
      span.end_us = at;
      if (span.end_us >= span.begin_us) file_.exchanges.push_back(std::move(span));
    }
  }

  TraceFile file_;
  std::map<std::string, TraceSpan> begun_;  ///< collectives, by ID
};

}  // namespace

Result<TraceFile> parse_trace(std::string_view subject, std::string_view text) {
  TraceParser reader;
  for (const std::string_view line : split(text, '\n')) reader.add_line(line);
  TraceFile file = reader.finish();
  if (file.steps.empty()) return corrupt("{}: contains no complete step", subject);
  return file;
}

Result<TraceFile> read_trace(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_regular(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::string text(std::min<std::uint64_t>(size, kTraceLimit.value), '\0');
  STOKER_RETURN_IF_ERROR(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return parse_trace(printable(path.string()), text);
}

}  // namespace stoker::record
