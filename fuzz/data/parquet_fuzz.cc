// Parquet files of any bytes: columns with one value or range per row, consistent lists, or an error, in
// bounded memory; and every range is inside the file or its decompressed pages.
#include <cstring>

#include "parquet/parquet.h"

namespace {

using namespace stoker::archive;
using namespace stoker::codec;
using namespace stoker::parquet;

void check_places(std::span<const ParquetFile::ValueLocation> places, std::uint64_t rows,
                  std::uint64_t size) {
  STOKER_CHECK(places.size() == rows);
  for (const ParquetFile::ValueLocation& place : places)
    STOKER_CHECK(place.offset <= size && place.bytes <= size - place.offset);
}

// Slots are the items of the innermost lists, items of each level the lists of the next.
void check_values(const ParquetLeaf& leaf, const ParquetValues& values, std::uint64_t rows) {
  STOKER_CHECK(values.rows == rows && values.lists.size() == leaf.lists);
  STOKER_CHECK(values.numbers.size() == values.slots * byte_width(leaf.type));
  STOKER_CHECK(values.texts.size() == (leaf.type == ParquetLeaf::Type::bytes ? values.slots : 0));
  STOKER_CHECK(values.present.empty() || values.present.size() == values.slots);
  std::uint64_t above = rows;
  for (const ParquetValues::List& list : values.lists) {
    STOKER_CHECK(list.offsets.size() == above + 1 && list.offsets.front() == 0);
    STOKER_CHECK(list.present.empty() || list.present.size() == above);
    for (std::size_t i = 1; i < list.offsets.size(); ++i)
      STOKER_CHECK(list.offsets[i - 1] <= list.offsets[i]);
    above = list.offsets.back();
  }
  STOKER_CHECK(above == values.slots);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = ParquetFile::open(
      [bytes](std::uint64_t at, std::span<std::byte> out) -> stoker::Status {
        STOKER_CHECK(at <= bytes.size() && out.size() <= bytes.size() - at);
        if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
        return {};
      },
      size, "fuzz");
  if (!file.ok()) return 0;
  constexpr std::uint64_t kFewRows = 1 << 16;  // what is passed over takes memory, too
  constexpr ParquetLimits kLimits = {.values = {1 << 20}};
  ParquetValues values;  // memory that one leaf and group after the other is read into
  for (std::size_t leaf = 0; leaf < file->leaves().size(); ++leaf) {
    for (std::size_t group = 0; group < file->groups(); ++group) {
      (void)file->range_of(group, leaf);
      const auto pages = file->pages(group, leaf);
      for (const auto& page : pages.ok() ? *pages : std::vector<ParquetFile::PageRows>())
        STOKER_CHECK(page.rows.begin < page.rows.end && page.rows.end <= file->rows(group));
      const RowRange some{0, 1};
      if (pages.ok() && pages->size() > 1 && file->rows(group) < kFewRows &&
          file->read_rows(group, leaf, std::span(&some, 1), values).ok())
        check_values(file->leaves()[leaf], values, file->rows(group));
      if (file->read_leaf(group, leaf, values, kLimits).ok())
        check_values(file->leaves()[leaf], values, file->rows(group));
    }
    const auto texts = file->read_texts(leaf, kLimits);
    if (texts.ok()) STOKER_CHECK(texts->size() == file->rows());
    const auto packed = file->packed(leaf, kLimits);
    if (packed.ok()) check_places(packed->value_locations, file->rows(), packed->pages.shape[0]);
    const auto places = file->value_locations(leaf, kLimits);
    if (places.ok()) check_places(*places, file->rows(), size);
  }
  return 0;
}
