// Traces from anywhere, cut off or damaged: events or an error, the same in pieces of any size, and times
// whose sums are exact.
#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/trace/event_stream.h"
#include "profile/trace/time_sets.h"
#include "profile/trace/trace_collectives.h"
#include "profile/trace/trace_events.h"

namespace {

using namespace stoker::profile;

struct Outcome {
  std::uint64_t events = 0;
  std::uint64_t damaged = 0;
  bool is_ok = false;
  std::vector<TimeSpan> spans;
};

Outcome read(std::string_view text, std::size_t piece) {
  Outcome outcome;
  TraceInfo info;
  TimeSets sets(1, 16);
  EventStream stream(
      [&](const TraceEvent& event) {
        (void)kind_of(event);
        (void)step_number(event.name);
        const CollectiveKind kind = collective_of(event, info);
        STOKER_CHECK(kind.ranks >= 0 && kind.operation.size() <= 70);
        if (event.has_time) sets.add(0, {event.begin, event.begin + event.duration});
      },
      [&](std::string_view key, std::string_view json) {
        if (key == "distributedInfo") info = parse_distributed_info(json);
      });
  outcome.is_ok = true;
  for (std::size_t at = 0; at < text.size() && outcome.is_ok; at += piece)
    outcome.is_ok = stream.add(text.substr(at, piece)).ok();
  outcome.is_ok = outcome.is_ok && stream.finish().ok();
  outcome.events = stream.events();
  outcome.damaged = stream.damaged();
  sets.finish();
  outcome.spans.assign(sets.set(0).begin(), sets.set(0).end());
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Outcome whole = read(text, size + 1);
  const Outcome pieces = read(text, 1 + size / 7);
  STOKER_CHECK(whole.is_ok == pieces.is_ok && whole.events == pieces.events &&
               whole.damaged == pieces.damaged);
  for (std::size_t i = 1; i < whole.spans.size(); ++i)
    STOKER_CHECK(whole.spans[i - 1].end < whole.spans[i].begin);
  STOKER_CHECK(overlap(whole.spans, whole.spans) == length_of(whole.spans));
  return 0;
}
