#include "record/events.h"

#include <algorithm>
#include <cmath>

#include "base/json/json.h"
#include "record/lines.h"
#include "stoker/time.h"

namespace stoker::record {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kMaxLine = 1u << 20;

Json to_json(const FieldValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        if constexpr (std::same_as<std::remove_cvref_t<decltype(v)>, double>) {
          if (!std::isfinite(v)) return nullptr;  // JSON cannot represent such numbers
        }
        return v;
      },
      value);
}

std::optional<FieldValue> from_json(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return FieldValue(nullptr);
    case Json::value_t::boolean:
      return FieldValue(value.get<bool>());
    case Json::value_t::number_integer:
      return FieldValue(value.get<std::int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = value.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(INT64_MAX)) return FieldValue(static_cast<double>(number));
      return FieldValue(static_cast<std::int64_t>(number));
    }
    case Json::value_t::number_float:
      return FieldValue(value.get<double>());
    case Json::value_t::string:
      return FieldValue(value.get<std::string>());
    case Json::value_t::array: {
      std::vector<std::string> list;
      for (const Json& item : value) {
        if (!item.is_string()) return std::nullopt;
        list.push_back(item.get<std::string>());
      }
      return FieldValue(std::move(list));
    }
    default:
      return std::nullopt;
  }
}

std::optional<Event> parse_event(std::string_view writer, std::string_view line) {
  const Json object = parse_json<Json>(line);
  if (!object.is_object()) return std::nullopt;
  const auto time = object.find("time");
  const auto kind = object.find("kind");
  if (time == object.end() || !time->is_number() || kind == object.end() || !kind->is_string())
    return std::nullopt;
  Event event;
  event.time = time->get<double>();
  if (!std::isfinite(event.time)) return std::nullopt;
  event.kind = kind->get<std::string>();
  event.writer = writer;
  for (const auto& [name, value] : object.items()) {
    if (name == "time" || name == "kind") continue;
    if (auto field = from_json(value)) event.fields.push_back({name, std::move(*field)});
  }
  return event;
}

class LogBuilder {
 public:
  explicit LogBuilder(std::string_view writer) : writer_(writer) {}

  bool add_line(std::string_view line, LineKind kind) {
    if (kind == LineKind::torn) {
      log.torn = true;
      return true;
    }
    if (line.empty() && kind == LineKind::whole) return true;  // ends a damaged line, see lines.h
    if (log.events.size() == kMaxEvents) {
      log.truncated = true;
      return false;
    }
    auto event = kind == LineKind::whole ? parse_event(writer_, line) : std::nullopt;
    if (event) {
      log.events.push_back(std::move(*event));
    } else {
      ++log.damaged;
    }
    return true;
  }

  EventLog log;

 private:
  std::string writer_;
};

const FieldValue* find_field(const Event& event, std::string_view name) {
  for (const Field& field : event.fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

constexpr std::string_view kPrefix = "events-";
constexpr std::string_view kSuffix = ".jsonl";

}  // namespace

Result<EventWriter> EventWriter::open(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_append(file));
  STOKER_ASSIGN_OR_RETURN(mid_line, ends_mid_line(file));
  return EventWriter(std::move(opened), mid_line);
}

void EventWriter::reserve(std::uint64_t bytes) {
  const auto size = file_.fd() < 0 ? Result<std::uint64_t>(0) : file_.size();
  if (file_.fd() >= 0 && size.ok()) (void)file_.reserve(*size + bytes);
}

Status EventWriter::write(std::string_view kind, std::span<const Field> fields) {
  return write_at(unix_seconds(RealClock().wall()), kind, fields);
}

Status EventWriter::write_at(double time, std::string_view kind, std::span<const Field> fields) {
  if (file_.fd() < 0) return {};
  Json object;
  object["time"] = time;
  object["kind"] = std::string(kind);
  for (const Field& field : fields) object[field.name] = to_json(field.value);
  const std::string line = json_text(object) + "\n";
  return append_record(file_, line, mid_line_);
}

std::optional<std::string_view> Event::text(std::string_view name) const {
  const FieldValue* value = find_field(*this, name);
  if (value == nullptr || !std::holds_alternative<std::string>(*value)) return std::nullopt;
  return std::get<std::string>(*value);
}

std::optional<std::int64_t> Event::integer(std::string_view name) const {
  const FieldValue* value = find_field(*this, name);
  if (value == nullptr || !std::holds_alternative<std::int64_t>(*value)) return std::nullopt;
  return std::get<std::int64_t>(*value);
}

std::optional<double> Event::number(std::string_view name) const {
  const FieldValue* value = find_field(*this, name);
  if (value == nullptr) return std::nullopt;
  if (std::holds_alternative<double>(*value)) return std::get<double>(*value);
  if (std::holds_alternative<std::int64_t>(*value))
    return static_cast<double>(std::get<std::int64_t>(*value));
  return std::nullopt;
}

std::optional<bool> Event::flag(std::string_view name) const {
  const FieldValue* value = find_field(*this, name);
  if (value == nullptr || !std::holds_alternative<bool>(*value)) return std::nullopt;
  return std::get<bool>(*value);
}

std::span<const std::string> Event::list(std::string_view name) const {
  const FieldValue* value = find_field(*this, name);
  if (value == nullptr || !std::holds_alternative<std::vector<std::string>>(*value)) return {};
  return std::get<std::vector<std::string>>(*value);
}

EventLog parse_events(std::string_view writer, std::string_view text) {
  LogBuilder builder(writer);
  visit_text(text, kMaxLine,
             [&](std::string_view line, LineKind kind) { return builder.add_line(line, kind); });
  return std::move(builder.log);
}

Result<EventLog> read_events(const Path& file) {
  std::string writer = file.stem().string();
  if (writer.starts_with(kPrefix)) writer.erase(0, kPrefix.size());
  LogBuilder builder(writer);
  STOKER_RETURN_IF_ERROR(visit_lines(
      file, kMaxLine, [&](std::string_view line, LineKind kind) { return builder.add_line(line, kind); }));
  return std::move(builder.log);
}

Result<EventLog> read_attempt_events(const Path& attempt_folder) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(attempt_folder));
  EventLog all;
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    STOKER_ASSIGN_OR_RETURN(log, read_events(attempt_folder / name));
    std::move(log.events.begin(), log.events.end(), std::back_inserter(all.events));
    all.damaged += log.damaged;
    all.torn = all.torn || log.torn;
    all.truncated = all.truncated || log.truncated;
  }
  std::stable_sort(all.events.begin(), all.events.end(),
                   [](const Event& a, const Event& b) { return a.time < b.time; });
  return all;
}

}  // namespace stoker::record
