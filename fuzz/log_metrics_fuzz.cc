// Output of programs: metrics of a line have names and a step that is not negative, in any cut of the stream.
#include <cstdint>
#include <string_view>

#include "observe/metrics/log_metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::observe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto known = LogMetrics::create("");
  auto own = LogMetrics::create(R"(step (?P<step>\S+) loss (?P<loss>\S+))");
  STOKER_CHECK(known.ok() && own.ok());
  LineSplitter splitter;
  const auto visit = [&](std::string_view line) {
    for (LogMetrics* reader : {&*known, &*own}) {
      const auto metrics = reader->read(line);
      if (!metrics) continue;
      STOKER_CHECK(metrics->step >= 0 && !metrics->values.empty());
      for (const auto& [name, value] : metrics->values) STOKER_CHECK(!name.empty());
    }
  };
  splitter.feed(text.substr(0, size / 2), visit);
  splitter.feed(text.substr(size / 2), visit);
  splitter.feed("\n", visit);
  return 0;
}
