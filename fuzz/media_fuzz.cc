// Lines of images and histograms: a record that is accepted survives a round trip.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "record/media/media.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::record;
  const auto record = parse_media(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!record) return 0;
  const auto again = parse_media(media_line(*record));
  STOKER_CHECK(again && again->name == record->name && again->step == record->step);
  STOKER_CHECK(again->content.index() == record->content.index());
  if (const ValueHistogram* histogram = record->histogram()) {
    STOKER_CHECK(again->histogram()->counts == histogram->counts);
    for (const double share : {0.0, 0.25, 0.5, 1.0}) {
      const double value = histogram->quantile(share);
      STOKER_CHECK(histogram->count() == 0 || (value >= histogram->lowest && value <= histogram->highest));
    }
  } else {
    STOKER_CHECK(again->image()->bytes == record->image()->bytes);
  }
  return 0;
}
