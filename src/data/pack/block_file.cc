#include "data/pack/block_file.h"

#include <algorithm>
#include <fcntl.h>
#include <utility>

#include "base/hash.h"

namespace stoker::data {

namespace {

// A thread writes one file after the other: the pages of a block are paid for once.
std::vector<std::byte>& spare_buffer() {
  thread_local std::vector<std::byte> buffer;
  return buffer;
}

}  // namespace

BlockFile::BlockFile(File file) : file_(std::move(file)), buffer_(std::move(spare_buffer())) {
  buffer_.clear();
  buffer_.reserve(formats::kHashBlock);
}

Result<BlockFile> BlockFile::create(const Path& path) {
  OK_OR_RETURN(file, File::create(path));
  return BlockFile(std::move(file));
}

Status BlockFile::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::size_t room = formats::kHashBlock - buffer_.size();
    const std::span<const std::byte> part = data.first(std::min(room, data.size()));
    buffer_.insert(buffer_.end(), part.begin(), part.end());
    data = data.subspan(part.size());
    if (buffer_.size() == formats::kHashBlock) RETURN_IF_ERROR(flush());
  }
  return {};
}

Status BlockFile::flush() {
  if (buffer_.empty()) return {};
  blocks_.push_back(sha256(buffer_));
  RETURN_IF_ERROR(file_.write(buffer_));
  // Starts writing back now, so that the sync at the end has little left to wait for. Only a hint.
  (void)::sync_file_range(file_.fd(), static_cast<off_t>(bytes_), static_cast<off_t>(buffer_.size()),
                          SYNC_FILE_RANGE_WRITE);
  bytes_ += buffer_.size();
  buffer_.clear();
  return {};
}

Status BlockFile::finish() {
  RETURN_IF_ERROR(flush());
  spare_buffer() = std::move(buffer_);
  RETURN_IF_ERROR(file_.sync());
  return file_.close();
}

}  // namespace stoker::data
