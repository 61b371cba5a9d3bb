// Reads the pages of a column chunk in order, in pieces of the file. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "archive/tar.h"
#include "codec/raw_bytes.h"
#include "parquet/pages/page.h"
#include "stoker/status.h"

namespace stoker::parquet {

class ChunkPages {
 public:
  /// `read` and the viewed `subject` must outlive it. REQUIRES: `bytes` from `begin` on are inside the file.
  ChunkPages(const archive::ReadAt& read, std::uint64_t begin, std::uint64_t bytes, std::string_view subject)
      : read_(read), subject_(subject), at_(begin), left_(bytes) {}

  bool is_at_end() const { return left_ == 0; }
  /// The next page, valid until the next call. Corrupt for a damaged header, a page beyond the chunk and a
  /// wrong CRC-32; Invalid for a page that decompresses to more than 256 MiB.
  Result<Page> next();
  /// Offset of the last page's bytes in the file.
  std::uint64_t offset() const { return at_ - stored_; }

 private:
  Status damaged() const { return corrupt("{}: a page is damaged", subject_); }
  Status load(std::uint64_t bytes);
  Result<PageHeader> read_header();
  void pass(std::uint64_t bytes);

  const archive::ReadAt& read_;
  std::string_view subject_;
  std::uint64_t at_;    // next offset in the file
  std::uint64_t left_;  // of the chunk
  std::uint64_t stored_ = 0;
  codec::RawBytes window_;
  std::span<const std::byte> ready_;  // unread part of the window
};

}  // namespace stoker::parquet
