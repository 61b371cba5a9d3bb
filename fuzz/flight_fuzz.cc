// A rank's flight recorder and trace files, as a crash or another program may leave them: ordered entries and
// ascending times, or an error that names the file.
#include <cstdint>
#include <span>
#include <string_view>

#include "record/trace/desync.h"
#include "record/trace/trace_file.h"

namespace {

using stoker::record::FlightDump;

template <typename T>
bool has_failed(const stoker::Result<T>& result) {
  if (result.ok()) return false;
  STOKER_CHECK(result.status().code() == stoker::Code::corrupt &&
               result.status().message().starts_with("fuzz: "));
  return true;
}

void read_flight_dump(std::span<const std::uint8_t> data) {
  const auto flight = stoker::record::parse_flight_dump("fuzz", std::as_bytes(data));
  if (has_failed(flight)) return;
  for (std::size_t i = 1; i < flight->entries.size(); ++i) {
    STOKER_CHECK(flight->entries[i - 1].number <= flight->entries[i].number);
  }
  // A single rank has no peers to differ from; at most it waits for other hosts.
  STOKER_CHECK(stoker::record::describe_desync(std::span<const FlightDump>(&*flight, 1)).size() <= 1);
}

void read_trace(std::string_view text) {
  const auto file = stoker::record::parse_trace("fuzz", text);
  if (has_failed(file)) return;
  STOKER_CHECK(!file->steps.empty());
  for (const auto& step : file->steps) STOKER_CHECK(step.begin_us >= 0 && step.end_us >= step.begin_us);
  for (const auto* spans : {&file->phases, &file->exchanges}) {
    for (const auto& span : *spans) STOKER_CHECK(span.begin_us >= 0 && span.end_us >= span.begin_us);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_flight_dump(std::span(data, size));
  read_trace({reinterpret_cast<const char*>(data), size});
  return 0;
}
