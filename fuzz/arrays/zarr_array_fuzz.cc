// An array's zarr.json or .zarray, and its chunks after the first zero byte: the metadata survives a round
// trip, and every row is read or is an error.
#include <cstdint>
#include <string_view>
#include <vector>

#include "arrays/zarr/array.h"
#include "arrays/zarr/shard.h"
#include "base/file.h"

namespace stoker::arrays {
namespace {

constexpr std::uint64_t kMaxBytes = 64u << 10;  // of a chunk and of all rows: what takes longer shows no more

Result<arrays::ZarrMetadata> parsed(int version, std::string_view text) {
  return version == 2 ? parse_zarr_v2(text, "", "fuzz") : parse_zarr_v3(text, "fuzz");
}

bool is_small(const arrays::ZarrMetadata& metadata) {
  const auto chunk = codec::product(metadata.inner_chunks(), metadata.type.bytes);
  const auto all = codec::product(metadata.shape, metadata.type.bytes);
  const auto index = metadata.sharding ? shard_index_bytes(metadata) : 0;
  return chunk && all && index && *chunk <= kMaxBytes && *all <= kMaxBytes && *index <= kMaxBytes;
}

// Every value is inside the decompressed bytes.
void check_values(const arrays::ZarrArray& array) {
  const auto values = array.values();
  if (!values.ok()) return;
  STOKER_CHECK(values->places.size() == array.rows());
  const std::uint64_t fill = values->fill ? values->fill->element_bytes : 0;
  const std::uint64_t bytes = values->array.shape[0] + fill;
  for (const codec::ValueArray::Range& place : values->places)
    STOKER_CHECK(place.bytes <= bytes && place.begin <= bytes - place.bytes);
}

void read(const arrays::ZarrMetadata& metadata, std::string_view text, std::string_view stored) {
  static const TempDirectory folder{Path("/dev/shm")};
  const Path store = folder / "store";
  const Path chunk = store / chunk_key(metadata, codec::Extents(metadata.shape.size()));
  STOKER_CHECK(make_directories(chunk.parent_path()).ok());
  STOKER_CHECK(write_file(store / (metadata.version == 2 ? ".zarray" : "zarr.json"), text).ok());
  STOKER_CHECK(write_file(chunk, stored).ok());
  const auto array = arrays::ZarrArray::open(store, "");
  STOKER_CHECK(array.ok() && (*array)->metadata().shape == metadata.shape);
  if (metadata.type.kind == codec::ElementType::Kind::variable_length) {
    check_values(**array);
    STOKER_CHECK(remove_tree(store).ok());
    return;
  }
  std::vector<std::byte> out((*array)->rows() * (*array)->row_bytes());
  const Status in_order = (*array)->read_rows(0, (*array)->rows(), out);
  std::vector<std::uint64_t> rows;
  for (std::uint64_t row = (*array)->rows(); row-- > 0 && rows.size() < 8;) rows.push_back(row);
  std::vector<std::byte> some(rows.size() * (*array)->row_bytes());
  const Status backwards = (*array)->read_rows(rows, some);
  STOKER_CHECK(!in_order.ok() || backwards.ok());
  for (std::size_t i = 0; in_order.ok() && i < rows.size(); ++i) {
    const std::size_t bytes = (*array)->row_bytes();
    const auto row = std::span(out).subspan(rows[i] * bytes, bytes);
    STOKER_CHECK(std::equal(row.begin(), row.end(), some.begin() + static_cast<std::ptrdiff_t>(i * bytes)));
  }
  STOKER_CHECK(remove_tree(store).ok());
}

}  // namespace
}  // namespace stoker::arrays

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  using namespace stoker::arrays;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(0, end);
  for (const int version : {2, 3}) {
    const auto metadata = parsed(version, text);
    if (!metadata.ok()) continue;
    const auto again = parsed(version, to_json(*metadata));
    STOKER_CHECK(again.ok());
    stoker::arrays::ZarrMetadata same = *again;
    if (version == 2) same.attributes = metadata->attributes;  // which are in a separate file
    STOKER_CHECK(same == *metadata);
    if (is_small(*metadata)) read(*metadata, text, input.substr(std::min(end + 1, size)));
  }
  return 0;
}
