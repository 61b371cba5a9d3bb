#include "sources/merged_names.h"

#include <algorithm>

#include "base/language/counted.h"
#include "sources/source.h"
#include "stoker/text.h"

namespace stoker::sources {

void MergedNames::add(std::string_view key, std::span<const std::string_view> extensions) {
  std::uint64_t images = 0;
  std::string_view first, second;
  for (const std::string_view extension : extensions) {
    if (!is_image_extension(extension)) continue;
    if (is_main_image(extension)) return;  // the sample's image, and its attached files
    if (extension.front() < '0' || extension.front() > '9') continue;
    if (images == 0) first = extension;
    if (images == 1) second = extension;
    ++images;
  }
  if (images == 0) return;
  const bool is_first = images > 1 ? samples_ == 0 : samples_ + single_ == 0;
  if (is_first) {
    key_ = printable(key);
    first_ = format("{}.{}", key_, printable(first));
    second_ = format("{}.{}", key_, printable(second));
  }
  if (images == 1) ++single_;
  if (images > 1) ++samples_;
  if (images > 1) images_ += images;
}

std::string MergedNames::note() const {
  constexpr std::string_view kRule = "a key ends at the first dot";
  if (samples_ > 0)
    return format(
        "names with dots: {} in {}, such as '{}' and '{}' in '{}': {} "
        "(`stoker data pack ARCHIVE.tar OUT` makes a sample of each)",
        counted(images_, "image"), counted(samples_, "sample"), first_, second_, key_, kRule);
  if (single_ > 0)
    return format(
        "names with dots: {} with a number after the first dot, such as '{}' of the sample '{}': {}",
        counted(single_, "image"), first_, key_, kRule);
  return {};
}

}  // namespace stoker::sources
