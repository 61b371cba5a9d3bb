// Lines of files of points: a line that is accepted has a valid name and survives a round trip.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "record/points/points.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::record;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto point = parse_point(text.substr(0, text.find('\n')));
  if (!point) return 0;
  STOKER_CHECK(check_metric_name(point->metric).ok() && point->step.value_or(0) >= 0);
  std::string line;
  append_point(*point, &line);
  STOKER_CHECK(line.ends_with('\n'));
  line.pop_back();
  const auto again = parse_point(line);
  STOKER_CHECK(again && again->metric == point->metric && again->step == point->step);
  STOKER_CHECK(again->value == point->value || (std::isnan(again->value) && std::isnan(point->value)));
  return 0;
}
