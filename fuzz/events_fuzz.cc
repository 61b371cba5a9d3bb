// Damaged or foreign event files: never more events than lines; every line is an event, damaged, blank or
// truncated; and every typed view of an event returns a value or nothing.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "record/run_events.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::record;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const EventLog log = parse_events("fuzz", text);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  STOKER_CHECK(log.events.size() + log.damaged <= lines + 1);
  for (const Event& event : log.events) {
    (void)attempt_started(event);
    (void)rank_started(event);
    (void)rank_ended(event);
    (void)stopping(event);
    (void)attempt_ended(event);
    (void)checkpoint_saved(event);
    (void)resumed(event);
    for (const Field& field : event.fields) {
      (void)event.text(field.name);
      (void)event.integer(field.name);
      (void)event.number(field.name);
      (void)event.flag(field.name);
      (void)event.list(field.name);
    }
  }
  return 0;
}
