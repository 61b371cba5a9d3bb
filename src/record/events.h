// What happened, one JSON object per line, one file per writer. Written by supervisors and trainers, read by
// status, report and explain. Kinds and their fields are in record/run_events.h; format:
// docs/formats/run.md#events. A writer belongs to one thread; readers are free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::record {

using FieldValue =
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// One named value of an event.
struct Field {
  std::string name;
  FieldValue value;
};

/// Appends events to one file, each in one write(2): a line survives kill -9 of its writer.
class EventWriter {
 public:
  EventWriter() = default;
  /// Makes the file, or goes on with it (after a line break when its last line is torn).
  static Result<EventWriter> open(const Path& file);

  /// Writes `{"time": now, "kind": kind, fields...}`. Text that is no UTF-8 is stored with U+FFFD in place of
  /// the broken bytes. A default-made writer swallows events.
  Status write(std::string_view kind, std::span<const Field> fields);
  Status write(std::string_view kind, std::initializer_list<Field> fields) {
    return write(kind, std::span<const Field>(fields.begin(), fields.size()));
  }
  /// As `write`, at a given time (Unix seconds).
  Status write_at(double time, std::string_view kind, std::span<const Field> fields);

 private:
  EventWriter(File file, bool mid_line) : file_(std::move(file)), mid_line_(mid_line) {}

  File file_;
  bool mid_line_ = false;
};

/// One event as read. Fields that are objects or mixed lists of another version are left out.
struct Event {
  double time = 0;
  std::string kind;
  std::string writer;  ///< from the file's name: "node-0000", "rank-0003"
  std::vector<Field> fields;

  /// The field of that name as text, whole number, number, truth or list; nullopt when absent or another
  /// type.
  std::optional<std::string_view> text(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<bool> flag(std::string_view name) const;
  std::span<const std::string> list(std::string_view name) const;
};

/// Events of one or several files, by time (stable, so that one writer's order is kept).
struct EventLog {
  std::vector<Event> events;
  std::size_t damaged = 0;  ///< complete lines that are no event
  bool torn = false;        ///< a last line without an end
  bool truncated = false;   ///< more than the limit
};

/// Most events read from one file; lines over 1 MiB count as damaged.
inline constexpr std::size_t kMaxEvents = 1'000'000;

/// Reads one file. NotFound without it.
Result<EventLog> read_events(const Path& file);
/// Reads every `events-*.jsonl` of an attempt's folder, merged by time.
Result<EventLog> read_attempt_events(const Path& attempt_folder);
/// From memory, for one writer.
EventLog parse_events(std::string_view writer, std::string_view text);

}  // namespace stoker::record
