#include "data/pack/shard/block_file.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/uio.h>
#include <utility>

namespace stoker::data {

namespace {

constexpr std::size_t kGathered = 256u << 10;  // what a core's own cache holds beside the file at hand
constexpr std::size_t kNotGathered = 32u << 10;

// A thread writes one file after the other, or two: the pages of buffers are paid for once.
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

void give_buffer(std::vector<std::byte> buffer) {
  constexpr std::size_t kMostKept = 8;
  if (spare_buffers().size() < kMostKept) spare_buffers().push_back(std::move(buffer));
}

// Both, one after the other, in one system call where it takes them whole.
Status write_both(File& file, std::span<const std::byte> first, std::span<const std::byte> second) {
  const auto part = [](std::span<const std::byte> bytes) {
    return iovec{const_cast<std::byte*>(bytes.data()), bytes.size()};
  };
  const iovec both[] = {part(first), part(second)};
  // What it has not taken, because of an error or a signal too, is written again piece by piece.
  const auto done = static_cast<std::size_t>(std::max<ssize_t>(::writev(file.fd(), both, 2), 0));
  RETURN_IF_ERROR(file.write(first.subspan(std::min(done, first.size()))));
  return file.write(second.subspan(done - std::min(done, first.size())));
}

}  // namespace

BlockFile::BlockFile(File file, formats::BlockHash hash, Hashing when)
    : file_(std::move(file)),
      buffer_(take_buffer()),
      kind_(hash),
      when_(when),
      crc_(formats::BlockHash::crc32c) {}

BlockFile::~BlockFile() {
  if (buffer_.capacity() > 0) give_buffer(std::move(buffer_));
  give_held();
}

Result<BlockFile> BlockFile::create(const Path& path, formats::BlockHash hash, Hashing when) {
  OK_OR_RETURN(file, File::create(path));
  return BlockFile(std::move(file), hash, when);
}

Status BlockFile::write(std::span<const std::byte> data) {
  const bool is_large = data.size() >= kNotGathered;
  if (is_large || data.size() > kGathered - buffer_.size()) RETURN_IF_ERROR(flush());
  if (!is_large) {
    buffer_.insert(buffer_.end(), data.begin(), data.end());
    return {};
  }
  RETURN_IF_ERROR(put(data));
  settle();
  return {};
}

// A large piece within one block is written with what was gathered before it, and not read for the block's
// CRC again.
Status BlockFile::write_with_crc(std::span<const std::byte> data, std::uint32_t crc32c) {
  if (data.size() < kNotGathered) return write(data);
  const std::uint64_t room = formats::kHashBlock - bytes_ % formats::kHashBlock;
  if (buffer_.size() + data.size() > room) {
    RETURN_IF_ERROR(flush());
    RETURN_IF_ERROR(put(data));
  } else {
    hash(buffer_);
    if (kind_ == formats::BlockHash::crc32c) {
      crc_.update(data, crc32c);
    } else {
      hash(data);
    }
    RETURN_IF_ERROR(write_both(file_, buffer_, data));
    bytes_ += buffer_.size() + data.size();
    renew_buffer();
    end_if_full();
  }
  if (when_ == Hashing::now) settle();
  return {};
}

Status BlockFile::flush() {
  RETURN_IF_ERROR(put(buffer_));
  renew_buffer();
  return {};
}

Status BlockFile::put(std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::uint64_t room = formats::kHashBlock - bytes_ % formats::kHashBlock;
    const std::span<const std::byte> part = data.first(std::min<std::uint64_t>(room, data.size()));
    hash(part);
    RETURN_IF_ERROR(file_.write(part));
    bytes_ += part.size();
    data = data.subspan(part.size());
    end_if_full();
  }
  return {};
}

void BlockFile::hash(std::span<const std::byte> data) {
  if (kind_ == formats::BlockHash::crc32c) {
    crc_.update(data);
  } else {
    if (lane_.is_empty()) give_held();  // somebody ran it
    lane_.add(data);
  }
}

void BlockFile::settle() {
  lane_.run();
  give_held();
}

// REQUIRES: the lane is empty.
void BlockFile::give_held() {
  for (std::vector<std::byte>& buffer : held_) give_buffer(std::move(buffer));
  held_.clear();
}

// What was in it is written, and may still be to be hashed.
void BlockFile::renew_buffer() {
  if (when_ == Hashing::now) lane_.run();
  if (lane_.is_empty()) {
    settle();
    buffer_.clear();
  } else if (!buffer_.empty()) {
    held_.push_back(std::move(buffer_));
    buffer_ = take_buffer();
  }
}

void BlockFile::end_block() {
  if (kind_ == formats::BlockHash::crc32c) {
    blocks_.push_back(crc_.finish());
  } else {
    lane_.end();
  }
}

void BlockFile::end_if_full() {
  if (bytes_ % formats::kHashBlock != 0) return;
  end_block();
  // Starts writing back now, so that the sync at the end has little left to wait for. Only a hint.
  (void)::sync_file_range(file_.fd(), static_cast<off_t>(bytes_ - formats::kHashBlock),
                          static_cast<off_t>(formats::kHashBlock), SYNC_FILE_RANGE_WRITE);
}

Status BlockFile::put_head(std::span<const std::byte> head) {
  CHECK(head.size() <= std::min(bytes_ + buffer_.size(), formats::kHashBlock));
  head_.assign(head.begin(), head.end());
  return {};
}

// The first block was hashed with another head: it is read back, from memory most likely, and hashed again.
Status BlockFile::write_head() {
  if (head_.empty()) return {};
  RETURN_IF_ERROR(file_.write_at(0, head_));
  OK_OR_RETURN(written, File::open_read(file_.path()));
  std::vector<std::byte> block(std::min(bytes_, formats::kHashBlock));
  RETURN_IF_ERROR(written.read_at(0, block));
  blocks_[0] = formats::block_digest(kind_, block);
  return {};
}

Status BlockFile::finish() {
  RETURN_IF_ERROR(flush());
  if (bytes_ % formats::kHashBlock != 0) end_block();
  settle();
  if (kind_ == formats::BlockHash::sha256) blocks_ = lane_.digests();
  RETURN_IF_ERROR(write_head());
  RETURN_IF_ERROR(file_.sync());
  return file_.close();
}

}  // namespace stoker::data
