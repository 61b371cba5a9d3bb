#include "pack/shard/block_file.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/uio.h>
#include <utility>

namespace stoker::pack {

namespace {

constexpr std::size_t kGathered = 256u << 10;  // fits a core's cache together with the current file
constexpr std::size_t kNotGathered = 32u << 10;

// A thread writes its files sequentially or two at a time: reuses their buffers.
std::vector<std::vector<std::byte>>& spare_buffers() {
  thread_local std::vector<std::vector<std::byte>> buffers;
  return buffers;
}

std::vector<std::byte> take_buffer() {
  std::vector<std::vector<std::byte>>& spare = spare_buffers();
  std::vector<std::byte> buffer;
  if (!spare.empty()) {
    buffer = std::move(spare.back());
    spare.pop_back();
  }
  buffer.clear();
  buffer.reserve(kGathered);
  return buffer;
}

void recycle_buffer(std::vector<std::byte> buffer) {
  constexpr std::size_t kMaxKept = 8;
  if (spare_buffers().size() < kMaxKept) spare_buffers().push_back(std::move(buffer));
}

// Writes both spans with one system call if possible.
Status write_both(File& file, std::span<const std::byte> first, std::span<const std::byte> second) {
  const auto part = [](std::span<const std::byte> bytes) {
    return iovec{const_cast<std::byte*>(bytes.data()), bytes.size()};
  };
  const iovec both[] = {part(first), part(second)};
  // After a partial write (error or signal) the rest is written piece by piece.
  const auto done = static_cast<std::size_t>(std::max<ssize_t>(::writev(file.fd(), both, 2), 0));
  STOKER_RETURN_IF_ERROR(file.write(first.subspan(std::min(done, first.size()))));
  return file.write(second.subspan(done - std::min(done, first.size())));
}

}  // namespace

BlockFile::BlockFile(File file, dataset::BlockHash hash, Hashing when)
    : file_(std::move(file)),
      buffer_(take_buffer()),
      kind_(hash),
      when_(when),
      crc_(dataset::BlockHash::crc32c) {}

BlockFile::~BlockFile() {
  if (buffer_.capacity() > 0) recycle_buffer(std::move(buffer_));
  release_held();
}

Result<BlockFile> BlockFile::create(const Path& path, dataset::BlockHash hash, Hashing when) {
  STOKER_ASSIGN_OR_RETURN(file, File::create(path));
  return BlockFile(std::move(file), hash, when);
}

Status BlockFile::write(std::span<const std::byte> data) {
  const bool is_large = data.size() >= kNotGathered;
  if (is_large || data.size() > kGathered - buffer_.size()) STOKER_RETURN_IF_ERROR(flush());
  if (!is_large) {
    buffer_.insert(buffer_.end(), data.begin(), data.end());
    return {};
  }
  STOKER_RETURN_IF_ERROR(put(data));
  release_inputs();
  return {};
}

// A large piece within one block is written together with the buffer, and its CRC is combined instead of
// recomputed.
Status BlockFile::write_with_crc(std::span<const std::byte> data, std::uint32_t crc32c) {
  if (data.size() < kNotGathered) return write(data);
  const std::uint64_t room = dataset::kHashBlock - bytes_ % dataset::kHashBlock;
  if (buffer_.size() + data.size() > room) {
    STOKER_RETURN_IF_ERROR(flush());
    STOKER_RETURN_IF_ERROR(put(data));
  } else {
    hash(buffer_);
    if (kind_ == dataset::BlockHash::crc32c) {
      crc_.update(data, crc32c);
    } else {
      hash(data);
    }
    STOKER_RETURN_IF_ERROR(write_both(file_, buffer_, data));
    bytes_ += buffer_.size() + data.size();
    renew_buffer();
    end_if_full();
  }
  if (when_ == Hashing::immediate) release_inputs();
  return {};
}

Status BlockFile::flush() {
  STOKER_RETURN_IF_ERROR(put(buffer_));
  renew_buffer();
  return {};
}

Status BlockFile::put(std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::uint64_t room = dataset::kHashBlock - bytes_ % dataset::kHashBlock;
    const std::span<const std::byte> part = data.first(std::min<std::uint64_t>(room, data.size()));
    hash(part);
    STOKER_RETURN_IF_ERROR(file_.write(part));
    bytes_ += part.size();
    data = data.subspan(part.size());
    end_if_full();
  }
  return {};
}

void BlockFile::hash(std::span<const std::byte> data) {
  if (kind_ == dataset::BlockHash::crc32c) {
    crc_.update(data);
  } else {
    if (lane_.is_empty()) release_held();  // the lane was run by its owner
    lane_.add(data);
  }
}

void BlockFile::release_inputs() {
  lane_.run();
  release_held();
}

// REQUIRES: the lane is empty.
void BlockFile::release_held() {
  for (std::vector<std::byte>& buffer : held_) recycle_buffer(std::move(buffer));
  held_.clear();
}

// The content is written, but may still have to be hashed.
void BlockFile::renew_buffer() {
  if (when_ == Hashing::immediate) lane_.run();
  if (lane_.is_empty()) {
    release_inputs();
    buffer_.clear();
  } else if (!buffer_.empty()) {
    held_.push_back(std::move(buffer_));
    buffer_ = take_buffer();
  }
}

void BlockFile::end_block() {
  if (kind_ == dataset::BlockHash::crc32c) {
    blocks_.push_back(crc_.finish());
  } else {
    lane_.end();
  }
}

void BlockFile::end_if_full() {
  if (bytes_ % dataset::kHashBlock != 0) return;
  end_block();
  // Starts writeback early, so that the final sync is short. Only a hint.
  (void)::sync_file_range(file_.fd(), static_cast<off_t>(bytes_ - dataset::kHashBlock),
                          static_cast<off_t>(dataset::kHashBlock), SYNC_FILE_RANGE_WRITE);
}

Status BlockFile::overwrite_head(std::span<const std::byte> head) {
  STOKER_CHECK(head.size() <= std::min(bytes_ + buffer_.size(), dataset::kHashBlock));
  head_.assign(head.begin(), head.end());
  return {};
}

// The first block was hashed with its old head: reads it back (usually from the page cache) and hashes it
// again.
Status BlockFile::write_head() {
  if (head_.empty()) return {};
  STOKER_RETURN_IF_ERROR(file_.write_at(0, head_));
  STOKER_ASSIGN_OR_RETURN(written, File::open_read(file_.path()));
  std::vector<std::byte> block(std::min(bytes_, dataset::kHashBlock));
  STOKER_RETURN_IF_ERROR(written.read_at(0, block));
  blocks_[0] = dataset::block_digest(kind_, block);
  return {};
}

Status BlockFile::finish() {
  STOKER_RETURN_IF_ERROR(flush());
  if (bytes_ % dataset::kHashBlock != 0) end_block();
  release_inputs();
  if (kind_ == dataset::BlockHash::sha256) blocks_ = lane_.digests();
  STOKER_RETURN_IF_ERROR(write_head());
  STOKER_RETURN_IF_ERROR(file_.sync());
  return file_.close();
}

}  // namespace stoker::pack
