#include "parquet/pages/chunk_pages.h"

#include <algorithm>
#include <cstring>

#include "base/hashes/crc32.h"

namespace stoker::parquet {

namespace {

constexpr std::uint64_t kWindow = 256u << 10;  // it and a page's values stay in a core's own cache
constexpr std::uint64_t kHeader = 1u << 10;    // statistics may make a header longer
constexpr std::int64_t kPageLimit = 256 << 20;

}  // namespace

// Makes the next `bytes` ready. REQUIRES: the chunk has as many.
Status ChunkPages::load(std::uint64_t bytes) {
  if (bytes <= ready_.size()) return {};
  const std::uint64_t size = std::min(left_, std::max(kWindow, bytes));
  const std::size_t kept = ready_.size();
  if (window_.size() < size + kReadPadding) {
    codec::RawBytes larger(size + kReadPadding);
    if (kept > 0) std::memcpy(larger.data(), ready_.data(), kept);
    window_ = std::move(larger);
  } else if (kept > 0) {
    std::memmove(window_.data(), ready_.data(), kept);
  }
  const auto whole = std::span(window_).first(size);
  ready_ = {};
  STOKER_RETURN_IF_ERROR(read_(at_ + kept, whole.subspan(kept)));
  ready_ = whole;
  return {};
}

void ChunkPages::pass(std::uint64_t bytes) {
  at_ += bytes;
  left_ -= bytes;
  ready_ = ready_.subspan(bytes);
}

// A header truncated by the window looks like a damaged one: retry with a larger window.
Result<PageHeader> ChunkPages::read_header() {
  for (std::uint64_t wanted = kHeader;; wanted = std::uint64_t{4} * ready_.size()) {
    STOKER_RETURN_IF_ERROR(load(std::min(wanted, left_)));
    ThriftReader reader(ready_);
    const PageHeader header = read_page_header(reader);
    if (reader.is_damaged() && ready_.size() < left_) continue;
    if (reader.is_damaged() || !is_valid(header, left_ - reader.position())) return damaged();
    pass(reader.position());
    return header;
  }
}

Result<Page> ChunkPages::next() {
  STOKER_ASSIGN_OR_RETURN(header, read_header());
  if (header.bytes > kPageLimit)
    return invalid("{}: has a page of {} bytes (at most 256 MiB)", subject_, header.bytes);
  stored_ = static_cast<std::uint64_t>(header.packed_bytes);
  STOKER_RETURN_IF_ERROR(load(stored_));
  const Page page{.header = header, .stored = ready_.first(stored_)};
  pass(stored_);
  if (header.crc && crc32(page.stored) != *header.crc) return crc_mismatch(subject_);
  return page;
}

}  // namespace stoker::parquet
