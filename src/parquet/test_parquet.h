// Parquet files in memory. Tests only.
#pragma once

#include <cstring>
#include <string>

#include "parquet/parquet.h"

namespace stoker::parquet {

/// REQUIRES: `text` outlives the result, also below.
inline archive::ReadAt reader_of(const std::string& text) {
  return [&text](std::uint64_t at, std::span<std::byte> out) -> Status {
    STOKER_CHECK(at <= text.size() && out.size() <= text.size() - at);
    if (!out.empty()) std::memcpy(out.data(), text.data() + at, out.size());
    return {};
  };
}

/// Named x.parquet in messages.
inline Result<ParquetFile> open_parquet(const std::string& text) {
  return ParquetFile::open(reader_of(text), text.size(), "x.parquet");
}

}  // namespace stoker::parquet
