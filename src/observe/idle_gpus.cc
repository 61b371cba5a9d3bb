#include "observe/idle_gpus.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "observe/csv_tail.h"
#include "observe/gpu.h"
#include "stoker/text.h"

namespace stoker::observe {
namespace {

constexpr std::uint64_t kTail = std::uint64_t{8} << 20;
constexpr double kUsedPercent = 5;
constexpr double kOldSample = 90;
constexpr int kMaxNodes = 4096;

// The time of the last row in which the GPU was used, or of the first row. nan: its use is not known now.
double last_use(const record::MetricTable& table, std::span<const double> busy) {
  const auto time = table.column("time");
  if (!std::isfinite(busy.back())) return std::numeric_limits<double>::quiet_NaN();
  for (std::size_t row = busy.size(); row-- > 0;) {
    // A row without a value may hide use.
    if (!(busy[row] < kUsedPercent)) return time[row];
  }
  return time.front();
}

}  // namespace

std::optional<IdleGpus> idle_gpus(const record::Attempt& attempt, double now) {
  IdleGpus found;
  double since = -std::numeric_limits<double>::infinity();
  for (int node = 0; node < kMaxNodes && path_exists(attempt.system(node)); ++node) {
    const auto table = read_tail(attempt.system(node), kTail);
    if (!table || !table->has("time")) return std::nullopt;
    for (int gpu = 0; table->has(format("gpu{}.busy_percent", gpu)); ++gpu) {
      if (now - table->column("time").back() > kOldSample) return std::nullopt;
      const double use = last_use(*table, table->column(format("gpu{}.busy_percent", gpu)));
      if (!std::isfinite(use)) return std::nullopt;
      since = std::max(since, use);
      ++found.gpus;
    }
  }
  if (found.gpus == 0 || !std::isfinite(since) || since >= now) return std::nullopt;
  found.seconds = now - since;
  return found;
}

}  // namespace stoker::observe
