// Reads values of a Parquet file's columns for bench/parquet_columns_vs_pyarrow.py.
//
//   parquet_columns_bench FILE COLUMN PASSES
//
// Row group after row group, from the page cache: nanoseconds of CPU time for a value (one that is missing
// counts too) in PASSES passes after one that is not measured, and the CRC-32 of all values, their bytes one
// behind another.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/file.h"
#include "base/hashes/crc32.h"
#include "parquet/parquet.h"
#include "program.h"
#include "stoker/text.h"

namespace stoker::parquet {
namespace {

using bench::fail;
using bench::value_or_fail;

double cpu_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::uint32_t sum(const parquet::ParquetValues& values, std::uint32_t before) {
  std::uint32_t crc = crc32(values.numbers, before);
  for (std::size_t i = 0; i < values.texts.size(); ++i)
    crc = crc32(std::as_bytes(std::span(values.texts[i])), crc);
  return crc;
}

void run(const std::string& path, const std::string& column, std::uint64_t passes) {
  const File opened = value_or_fail(File::open_read(path));
  const archive::ReadAt read = [&opened](std::uint64_t at, std::span<std::byte> out) {
    return opened.read_at(at, out);
  };
  const parquet::ParquetFile file =
      value_or_fail(parquet::ParquetFile::open(read, value_or_fail(opened.size()), path));
  const auto leaf = file.find(column);
  if (!leaf) fail("no column " + column);
  std::uint32_t crc = 0;
  for (std::size_t group = 0; group < file.groups(); ++group)
    crc = sum(value_or_fail(file.read_leaf(group, *leaf)), crc);
  const double begin = cpu_seconds();
  std::uint64_t values = 0;
  parquet::ParquetValues found;
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    for (std::size_t group = 0; group < file.groups(); ++group) {
      const Status read = file.read_leaf(group, *leaf, found);
      if (!read.ok()) fail(read.to_string());
      values += found.slots;
    }
  }
  std::printf("%.4f %u\n", 1e9 * (cpu_seconds() - begin) / static_cast<double>(values), crc);
}

}  // namespace
}  // namespace stoker::parquet

int main(int argc, char** argv) {
  std::uint64_t passes = 0;
  if (argc != 4 || !stoker::parse_number(argv[3], &passes) || passes == 0) {
    std::fprintf(stderr, "parquet_columns_bench FILE COLUMN PASSES\n");
    return 2;
  }
  stoker::parquet::run(argv[1], argv[2], passes);
}
