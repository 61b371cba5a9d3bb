// An array's zarr.json or .zarray, and behind the first zero byte what is stored for its chunks: the metadata
// comes back from its own text, and every row is read or is an error.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "format/zarr/array.h"
#include "format/zarr/shard.h"

namespace stoker::formats {
namespace {

constexpr std::uint64_t kMostBytes = 64u
                                     << 10;  // of a chunk and of all rows: what takes longer shows no more

Result<ZarrMetadata> parsed(int version, std::string_view text) {
  return version == 2 ? parse_zarr_v2(text, "", "fuzz") : parse_zarr_v3(text, "fuzz");
}

bool is_small(const ZarrMetadata& metadata) {
  const auto chunk = product(metadata.inner_chunks(), metadata.type.bytes);
  const auto all = product(metadata.shape, metadata.type.bytes);
  const auto index = metadata.sharding ? shard_index_bytes(metadata) : 0;
  return chunk && all && index && *chunk <= kMostBytes && *all <= kMostBytes && *index <= kMostBytes;
}

// Whatever the chunks say, a value lies in what they unpack to.
void check_values(const ZarrArray& array) {
  const auto values = array.values();
  if (!values.ok()) return;
  CHECK(values->places.size() == array.rows());
  const std::uint64_t bytes = values->array.shape[0];
  for (const ValueArray::Place& place : values->places)
    CHECK(place.bytes <= bytes && place.begin <= bytes - place.bytes);
}

void read(const ZarrMetadata& metadata, std::string_view text, std::string_view stored) {
  static const TempDirectory folder{Path("/dev/shm")};
  const Path store = folder / "store";
  const Path chunk = store / chunk_key(metadata, Extents(metadata.shape.size()));
  CHECK(make_directories(chunk.parent_path()).ok());
  CHECK(write_file(store / (metadata.version == 2 ? ".zarray" : "zarr.json"), text).ok());
  CHECK(write_file(chunk, stored).ok());
  const auto array = ZarrArray::open(store, "");
  CHECK(array.ok() && (*array)->metadata().shape == metadata.shape);
  if (metadata.type.kind == ElementType::Kind::varying) {
    check_values(**array);
    CHECK(remove_tree(store).ok());
    return;
  }
  std::vector<std::byte> out((*array)->rows() * (*array)->row_bytes());
  const Status in_order = (*array)->read_rows(0, (*array)->rows(), out);
  std::vector<std::uint64_t> rows;
  for (std::uint64_t row = (*array)->rows(); row-- > 0 && rows.size() < 8;) rows.push_back(row);
  std::vector<std::byte> some(rows.size() * (*array)->row_bytes());
  const Status backwards = (*array)->read_rows(rows, some);
  CHECK(!in_order.ok() || backwards.ok());
  for (std::size_t i = 0; in_order.ok() && i < rows.size(); ++i) {
    const std::size_t bytes = (*array)->row_bytes();
    const auto row = std::span(out).subspan(rows[i] * bytes, bytes);
    CHECK(std::equal(row.begin(), row.end(), some.begin() + static_cast<std::ptrdiff_t>(i * bytes)));
  }
  CHECK(remove_tree(store).ok());
}

}  // namespace
}  // namespace stoker::formats

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::formats;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(0, end);
  for (const int version : {2, 3}) {
    const auto metadata = parsed(version, text);
    if (!metadata.ok()) continue;
    const auto again = parsed(version, to_json(*metadata));
    CHECK(again.ok());
    ZarrMetadata same = *again;
    if (version == 2) same.attributes = metadata->attributes;  // which have a file of their own
    CHECK(same == *metadata);
    if (is_small(*metadata)) read(*metadata, text, input.substr(std::min(end + 1, size)));
  }
  return 0;
}
