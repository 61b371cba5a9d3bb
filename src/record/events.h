// Events of a run, one JSON object per line, one file per writer. Written by supervisors and trainers, read
// by status, report and explain. Kinds and fields: record/run_events.h; format: docs/formats/run.md#events. A
// writer belongs to one thread; any number of readers.
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
#include "stoker/status.h"

namespace stoker::record {

using FieldValue =
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// One named value of an event.
struct Field {
  std::string name;
  FieldValue value;
};

/// Appends events to one file, each with one write(2), so that a line survives kill -9 of its writer.
class EventWriter {
 public:
  EventWriter() = default;
  /// Creates the file or appends to it, after a line break if its last line is torn.
  static Result<EventWriter> open(const Path& file);

  /// Writes `{"time": now, "kind": kind, fields...}`. Invalid UTF-8 in a text is replaced by U+FFFD. A
  /// default-constructed writer ignores events.
  Status write(std::string_view kind, std::span<const Field> fields);
  Status write(std::string_view kind, std::initializer_list<Field> fields) {
    return write(kind, std::span<const Field>(fields.begin(), fields.size()));
  }
  /// Like `write`, with a given time (Unix seconds).
  Status write_at(double time, std::string_view kind, std::span<const Field> fields);
  /// Allocates space for `bytes` more of events, so that an ending can be written when the disk is full. Best
  /// effort.
  void reserve(std::uint64_t bytes);

 private:
  EventWriter(File file, bool mid_line) : file_(std::move(file)), mid_line_(mid_line) {}

  File file_;
  bool mid_line_ = false;
};

/// One event as read. Fields that are objects or mixed lists (of a different version) are omitted.
struct Event {
  double time = 0;
  std::string kind;
  std::string writer;  ///< from the file name: "node-0000", "rank-0003"
  std::vector<Field> fields;

  /// The field of that name as text, integer, number, boolean or list; nullopt if absent or of a different
  /// type.
  std::optional<std::string_view> text(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<bool> flag(std::string_view name) const;
  std::span<const std::string> list(std::string_view name) const;
};

/// Events of one or several files, sorted by time (stable, so each writer's order is preserved).
struct EventLog {
  std::vector<Event> events;
  std::size_t damaged = 0;  ///< complete lines that are not events
  bool torn = false;        ///< the last line is incomplete
  bool truncated = false;   ///< the file exceeds the limit
};

/// Maximum number of events read from one file; lines longer than 1 MiB count as damaged.
inline constexpr std::size_t kMaxEvents = 1'000'000;

/// Reads one file. NotFound if it does not exist.
Result<EventLog> read_events(const Path& file);
/// Reads every `events-*.jsonl` in an attempt's folder, merged by time.
Result<EventLog> read_attempt_events(const Path& attempt_folder);
/// Parses one writer's events from memory.
EventLog parse_events(std::string_view writer, std::string_view text);

}  // namespace stoker::record
