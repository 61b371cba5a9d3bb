#include "data/look/sheet/numbers.h"

#include <algorithm>
#include <cmath>

#include "format/parquet/columns/number.h"

namespace stoker::data {

double Numbers::operator[](std::size_t i) const {
  return formats::load_number(type, bytes.data() + i * size_of(type)).real();
}

std::string Numbers::text(std::size_t i) const {
  return to_text(formats::load_number(type, bytes.data() + i * size_of(type)));
}

// By halves: the difference of the largest numbers there are is no number.
double Spread::share(double value) const {
  const double range = most / 2 - least / 2;
  if (!(range > 0)) return 0.5;
  return std::clamp((value / 2 - least / 2) / range, 0.0, 1.0);
}

Spread spread_of(const Numbers& numbers) {
  Spread spread;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double value = numbers[i];
    if (std::isnan(value)) {
      ++spread.nan;
    } else if (std::isinf(value)) {
      ++spread.infinite;
    } else {
      spread.least = spread.finite == 0 ? value : std::min(spread.least, value);
      spread.most = spread.finite == 0 ? value : std::max(spread.most, value);
      ++spread.finite;
    }
  }
  return spread;
}

bool is_whole(DType type) {
  return type != DType::f16 && type != DType::bf16 && type != DType::f32 && type != DType::f64;
}

}  // namespace stoker::data
