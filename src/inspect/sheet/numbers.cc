#include "inspect/sheet/numbers.h"

#include <algorithm>
#include <cmath>

#include "parquet/columns/number.h"

namespace stoker::inspect {

double Numbers::operator[](std::size_t i) const {
  return parquet::load_number(type, bytes.data() + i * size_of(type)).real();
}

std::string Numbers::text(std::size_t i) const {
  return to_text(parquet::load_number(type, bytes.data() + i * size_of(type)));
}

// Halves avoid an overflow of the difference.
double ValueRange::normalize(double value) const {
  const double half_width = most / 2 - least / 2;
  if (!(half_width > 0)) return 0.5;
  return std::clamp((value / 2 - least / 2) / half_width, 0.0, 1.0);
}

ValueRange value_range_of(const Numbers& numbers) {
  ValueRange range;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double value = numbers[i];
    if (std::isnan(value)) {
      ++range.nan;
    } else if (std::isinf(value)) {
      ++range.infinite;
    } else {
      range.least = range.finite == 0 ? value : std::min(range.least, value);
      range.most = range.finite == 0 ? value : std::max(range.most, value);
      ++range.finite;
    }
  }
  return range;
}

bool is_whole(DType type) {
  return type != DType::f16 && type != DType::bf16 && type != DType::f32 && type != DType::f64;
}

}  // namespace stoker::inspect
