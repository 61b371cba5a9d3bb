// Parquet files that a test has made in memory. Not used outside tests.
#pragma once

#include <cstring>
#include <string>

#include "format/parquet/parquet.h"

namespace stoker::formats {

/// REQUIRES: `text` outlives it, and so for the file below.
inline ReadAt reader_of(const std::string& text) {
  return [&text](std::uint64_t at, std::span<std::byte> out) -> Status {
    CHECK(at <= text.size() && out.size() <= text.size() - at);
    if (!out.empty()) std::memcpy(out.data(), text.data() + at, out.size());
    return {};
  };
}

/// Called x.parquet in messages.
inline Result<ParquetFile> open_parquet(const std::string& text) {
  return ParquetFile::open(reader_of(text), text.size(), "x.parquet");
}

}  // namespace stoker::formats
