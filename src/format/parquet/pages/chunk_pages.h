// The pages of a column chunk, one after another, read from its file piece by piece. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "format/parquet/pages/page.h"
#include "format/raw_bytes.h"
#include "format/tar.h"

namespace stoker::formats {

class ChunkPages {
 public:
  /// `read` and what `subject` views must outlive it. REQUIRES: `bytes` from `begin` on lie in the file.
  ChunkPages(const ReadAt& read, std::uint64_t begin, std::uint64_t bytes, std::string_view subject)
      : read_(read), subject_(subject), at_(begin), left_(bytes) {}

  bool is_at_end() const { return left_ == 0; }
  /// The next page, which lasts until the next call. Corrupt when its header is damaged, when it would not
  /// lie in the chunk and when its CRC-32 is another; Invalid when it would unpack to more than 256 MiB.
  Result<Page> next();
  /// Where in the file the bytes of the last page lie.
  std::uint64_t offset() const { return at_ - stored_; }

 private:
  Status damaged() const { return corrupt("{}: a page is damaged", subject_); }
  Status load(std::uint64_t bytes);
  Result<PageHeader> take_header();
  void pass(std::uint64_t bytes);

  const ReadAt& read_;
  std::string_view subject_;
  std::uint64_t at_;    // in the file: what comes next
  std::uint64_t left_;  // of the chunk
  std::uint64_t stored_ = 0;
  RawBytes window_;
  std::span<const std::byte> ready_;  // of the window: what comes next
};

}  // namespace stoker::formats
