// MDS shards and LitData chunks, and their indexes: any bytes give samples inside the file, or an error. The
// first byte selects the format.
#include <cstring>
#include <string>

#include "archive/streams/stream_index.h"
#include "archive/streams/stream_values.h"
#include "base/file.h"
#include "sources/streams/stream_scan.h"

namespace {

using namespace stoker;
using namespace stoker::archive;
using namespace stoker::codec;
using namespace stoker::dataset;
using namespace stoker::parquet;

void scan_in_place(std::span<const std::byte> bytes) {
  const auto scan = sources::scan_mds(
      [bytes](std::uint64_t at, std::span<std::byte> out) -> Status {
        STOKER_CHECK(at <= bytes.size() && out.size() <= bytes.size() - at);
        if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
        return {};
      },
      bytes.size(), "fuzz", "fuzz.mds");
  if (!scan.ok()) return;
  for (const sources::ShardSample& sample : scan->samples) {
    for (const sources::ShardMember& member : sample.members)
      STOKER_CHECK(member.data_offset <= bytes.size() && member.bytes <= bytes.size() - member.data_offset);
  }
}

// All kinds of columns.
std::shared_ptr<const std::vector<StreamColumn>> all_columns() {
  std::vector<StreamColumn> columns;
  for (const ColumnKind kind :
       {ColumnKind::file, ColumnKind::integer, ColumnKind::decimal_text, ColumnKind::array, ColumnKind::numpy,
        ColumnKind::tensor, ColumnKind::elements, ColumnKind::pixels, ColumnKind::files,
        ColumnKind::nested}) {
    columns.push_back(
        {.name = std::to_string(columns.size()), .encoding = "x", .kind = kind, .extension = "x"});
    if (kind == ColumnKind::elements) columns.back().type = DType::i32;
  }
  return std::make_shared<const std::vector<StreamColumn>>(std::move(columns));
}

void unpack(const Path& folder, std::string_view text, StreamLayout layout) {
  STOKER_CHECK(write_file(folder / "x.bin", text).ok());
  NoProgress progress;
  std::uint32_t samples = 0;
  const std::size_t at = layout == StreamLayout::zstd_batches ? 12 : 0;
  if (text.size() >= at + sizeof samples) std::memcpy(&samples, text.data() + at, sizeof samples);
  StreamShard shard{.file = "x.bin", .samples = samples, .layout = layout};
  shard.columns = all_columns();
  (void)sources::unpack_stream(folder, shard, folder, progress);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TempDirectory folder{Path("/dev/shm")};
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto bytes = std::as_bytes(std::span(text));
  switch (data[0] % 6) {
    case 0:
      scan_in_place(bytes);
      break;
    case 1:
      STOKER_CHECK(write_file(folder / "index.json", text).ok());
      (void)read_stream_index(folder.path());
      break;
    case 2:
      (void)nested_to_json(bytes, "fuzz");
      break;
    case 3:
      unpack(folder.path(), text, StreamLayout::rows);
      break;
    case 4:
      unpack(folder.path(), text, StreamLayout::zstd_samples);
      break;
    default:
      unpack(folder.path(), text, StreamLayout::zstd_batches);
  }
  return 0;
}
