// What a rank leaves of its exchanges and steps, as a crash or another program may leave it: a flight
// recorder's file and a trace. Entries in order, times that go forward, or an error that names the file.
#include <cstdint>
#include <span>
#include <string_view>

#include "record/trace/flight.h"
#include "record/trace/trace_file.h"

namespace {

using stoker::record::Flight;

template <typename T>
bool has_failed(const stoker::Result<T>& result) {
  if (result.ok()) return false;
  CHECK(result.status().code() == stoker::Code::corrupt && result.status().message().starts_with("fuzz: "));
  return true;
}

void read_flight(std::span<const std::uint8_t> data) {
  const auto flight = stoker::record::parse_flight("fuzz", std::as_bytes(data));
  if (has_failed(flight)) return;
  for (std::size_t i = 1; i < flight->entries.size(); ++i) {
    CHECK(flight->entries[i - 1].number <= flight->entries[i].number);
  }
  // One rank alone differs from nobody; at most it waits for other hosts.
  CHECK(stoker::record::differences(std::span<const Flight>(&*flight, 1)).size() <= 1);
}

void read_trace(std::string_view text) {
  const auto file = stoker::record::parse_trace("fuzz", text);
  if (has_failed(file)) return;
  CHECK(!file->steps.empty());
  for (const auto& step : file->steps) CHECK(step.begin_us >= 0 && step.end_us >= step.begin_us);
  for (const auto* spans : {&file->phases, &file->exchanges}) {
    for (const auto& span : *spans) CHECK(span.begin_us >= 0 && span.end_us >= span.begin_us);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_flight(std::span(data, size));
  read_trace({reinterpret_cast<const char*>(data), size});
  return 0;
}
