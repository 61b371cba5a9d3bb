#include "data/pack/shard/block_file.h"

#include <algorithm>
#include <fcntl.h>
#include <utility>

namespace stoker::data {

namespace {

constexpr std::size_t kGathered = 256u << 10;  // what a core's own cache holds beside the file at hand
constexpr std::size_t kNotGathered = 32u << 10;

// A thread writes one file after the other: the pages of the buffer are paid for once.
std::vector<std::byte>& spare_buffer() {
  thread_local std::vector<std::byte> buffer;
  return buffer;
}

}  // namespace

BlockFile::BlockFile(File file, formats::BlockHash hash)
    : file_(std::move(file)), buffer_(std::move(spare_buffer())), hash_(hash) {
  buffer_.clear();
  buffer_.reserve(kGathered);
}

Result<BlockFile> BlockFile::create(const Path& path, formats::BlockHash hash) {
  OK_OR_RETURN(file, File::create(path));
  return BlockFile(std::move(file), hash);
}

Status BlockFile::write(std::span<const std::byte> data) {
  const bool is_large = data.size() >= kNotGathered;
  if (is_large || data.size() > kGathered - buffer_.size()) RETURN_IF_ERROR(flush());
  if (is_large) return put(data);
  buffer_.insert(buffer_.end(), data.begin(), data.end());
  return {};
}

Status BlockFile::flush() {
  RETURN_IF_ERROR(put(buffer_));
  buffer_.clear();
  return {};
}

Status BlockFile::put(std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::uint64_t room = formats::kHashBlock - bytes_ % formats::kHashBlock;
    const std::span<const std::byte> part = data.first(std::min<std::uint64_t>(room, data.size()));
    hash_.update(part);
    RETURN_IF_ERROR(file_.write(part));
    bytes_ += part.size();
    data = data.subspan(part.size());
    if (bytes_ % formats::kHashBlock != 0) continue;
    blocks_.push_back(hash_.finish());
    // Starts writing back now, so that the sync at the end has little left to wait for. Only a hint.
    (void)::sync_file_range(file_.fd(), static_cast<off_t>(bytes_ - formats::kHashBlock),
                            static_cast<off_t>(formats::kHashBlock), SYNC_FILE_RANGE_WRITE);
  }
  return {};
}

Status BlockFile::finish() {
  RETURN_IF_ERROR(flush());
  if (bytes_ % formats::kHashBlock != 0) blocks_.push_back(hash_.finish());
  spare_buffer() = std::move(buffer_);
  RETURN_IF_ERROR(file_.sync());
  return file_.close();
}

}  // namespace stoker::data
