// Parquet files of any bytes as arrays in place, after a byte that selects options: an error, or samples that
// equal a copy byte by byte.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "archive/decompress_file.h"
#include "base/file.h"
#include "codec/chunks/chunk_reader.h"
#include "sources/tables/table_scan.h"

namespace {

using namespace stoker;
using namespace stoker::codec;
using namespace stoker::dataset;
using namespace stoker::sources;

constexpr std::uint64_t kMaxRows = 1u << 12;
constexpr std::uint64_t kMaxBytes = 1u << 22;

TableOptions chosen(std::uint8_t which) {
  TableOptions options;
  if ((which & 1) != 0) options.tensors.push_back({.name = "x", .columns = {"*"}, .type = DType::f64});
  if ((which & 2) != 0) options.columns = {"*"};
  if ((which & 4) != 0) {
    options.missing = MissingValues::fill;
    options.fill = parquet::Number{1.0};
  }
  return options;
}

std::string member_of(const ShardMember& member, const archive::ReadAt& read) {
  std::string bytes(member.bytes, '\0');
  const Status status = read(member.data_offset, std::as_writable_bytes(std::span(bytes)));
  return status.ok() ? bytes : status.to_string();
}

bool is_small(const ShardScan& scan) {
  std::uint64_t bytes = 0;
  for (const ShardSample& sample : scan.samples) {
    for (const ShardMember& member : sample.members) bytes += member.bytes;
  }
  return bytes <= kMaxBytes;
}

void compare(const ShardScan& there, const archive::ReadAt& there_at, const ShardScan& copy,
             const archive::ReadAt& copy_at) {
  STOKER_CHECK(there.samples.size() == copy.samples.size() && there.classes == copy.classes);
  for (std::size_t i = 0; i < there.samples.size(); ++i) {
    ShardSample a = there.samples[i];
    ShardSample b = copy.samples[i];
    for (ShardSample* sample : {&a, &b}) {
      std::sort(sample->members.begin(), sample->members.end(),
                [](const ShardMember& x, const ShardMember& y) { return x.extension < y.extension; });
    }
    STOKER_CHECK(a.key == b.key && a.label == b.label && a.members.size() == b.members.size());
    for (std::size_t m = 0; m < a.members.size(); ++m) {
      STOKER_CHECK(a.members[m].extension == b.members[m].extension &&
                   a.members[m].bytes == b.members[m].bytes);
      STOKER_CHECK(member_of(a.members[m], there_at) == member_of(b.members[m], copy_at));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TempDirectory folder{Path("/dev/shm")};
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const archive::ReadAt read = [bytes](std::uint64_t at, std::span<std::byte> out) -> Status {
    STOKER_CHECK(at <= bytes.size() && out.size() <= bytes.size() - at);
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
    return {};
  };
  const auto file = parquet::ParquetFile::open(read, bytes.size(), "fuzz");
  if (!file.ok() || file->rows() > kMaxRows) return 0;
  const TablePath no_columns;
  const TableFile columns(*file, no_columns);
  const TableSource table{columns, "fuzz", "fuzz"};
  const TableOptions options = chosen(data[0]);
  const auto there = scan_rows(table, bytes.size(), options, NoProgress());
  if (!there.ok() || !there->chunks || !is_small(*there)) return 0;
  auto out = archive::create_unnamed_file(folder.path());
  STOKER_CHECK(out.ok());
  NoProgress progress;
  const auto copy = unpack_rows(table, options, *out, progress);
  STOKER_CHECK(copy.ok());
  const Path shard = folder / "shard";
  STOKER_CHECK(write_file(shard, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}).ok());
  const auto opened = codec::ShardFile::open(shard);
  STOKER_CHECK(opened.ok());
  const codec::ChunkReader reader(*there->chunks, std::make_shared<codec::ChunkCache>(ByteCount{8u << 20}),
                                  "fuzz");
  const archive::ReadAt there_at = [&](std::uint64_t at, std::span<std::byte> into) {
    return reader.read(*opened, at, into);
  };
  const archive::ReadAt copy_at = [&](std::uint64_t at, std::span<std::byte> into) {
    return out->read_at(at, into);
  };
  compare(*there, there_at, *copy, copy_at);
  return 0;
}
