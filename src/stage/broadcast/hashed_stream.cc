#include "stage/broadcast/hashed_stream.h"

#include <algorithm>

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;

// A block with its hash is one frame.
constexpr std::uint64_t kHashedBlock = 4u << 20;
constexpr std::uint64_t kHashBytes = sizeof(Digest);
constexpr std::uint64_t kBlockBytes = kHashedBlock - kHashBytes;
constexpr std::size_t kMostStreamPieces = 65'536;

std::uint64_t blocks_in(std::uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

}  // namespace

HashedStream::HashedStream(std::uint64_t bytes)
    : bytes_(bytes),
      pieces_(divide_shards({bytes + blocks_in(bytes) * kHashBytes}, {kHashedBlock}, kMostStreamPieces)) {
  const MutexLock lock(mutex_);
  digests_.resize(blocks_in(bytes));
  kept_.resize(blocks_in(bytes));
}

std::uint64_t HashedStream::kept_bytes() const {
  const MutexLock lock(mutex_);
  return kept_bytes_;
}

std::uint64_t HashedStream::received_bytes() const {
  const MutexLock lock(mutex_);
  return received_;
}

Status HashedStream::problem() const {
  const MutexLock lock(mutex_);
  return problem_;
}

Status HashedStream::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

Status HashedStream::keep_all() {
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) STOKER_RETURN_IF_ERROR(fetch(piece));
  return {};
}

HashedStream::Block HashedStream::block_at(const ShardPiece& piece, std::uint64_t offset) const {
  const std::uint64_t number = (piece.offset + offset) / kHashedBlock;
  const std::uint64_t begin = number * kBlockBytes;
  return {.number = number, .offset = begin, .bytes = std::min(kBlockBytes, bytes_ - begin)};
}

Status HashedStream::fetch(std::uint32_t number) {
  const ShardPiece& piece = pieces_[number];
  std::vector<std::byte> buffer;
  for (std::uint64_t offset = 0; offset < piece.bytes; offset += kHashedBlock) {
    const Block block = block_at(piece, offset);
    buffer.resize(block.bytes);
    Status status = read_source(block.offset, buffer);
    if (!status.ok()) {
      const MutexLock lock(mutex_);
      last_failure_ = status;
      return status;
    }
    STOKER_RETURN_IF_ERROR(keep_block(block, buffer, sha256(buffer), false));
  }
  return {};
}

Status HashedStream::write(std::uint32_t number, std::uint64_t offset, std::span<const std::byte> bytes) {
  const Block block = block_at(pieces_[number], offset);
  if (offset % kHashedBlock != 0 || bytes.size() != block.bytes + kHashBytes)
    return corrupt("a peer sent a part of a block");
  const auto content = bytes.first(block.bytes);
  const Digest digest = sha256(content);
  if (!std::ranges::equal(digest, bytes.last(kHashBytes)))
    return corrupt("block {} has a different hash", block.number);
  return keep_block(block, content, digest, true);
}

void HashedStream::unreachable(std::uint32_t) {
  const MutexLock lock(mutex_);
  if (lost_.ok()) lost_ = last_failure_.ok() ? unavailable("no node could read it") : last_failure_;
}

Status HashedStream::read(std::uint32_t number, std::uint64_t offset, std::span<std::byte> out) {
  const Block block = block_at(pieces_[number], offset);
  if (offset % kHashedBlock != 0 || out.size() != block.bytes + kHashBytes)
    return invalid("block {} is sent as a whole", block.number);
  {
    const MutexLock lock(mutex_);
    if (!kept_[block.number]) return not_found("block {} is not here", block.number);
    std::ranges::copy(digests_[block.number], out.last(kHashBytes).begin());
  }
  return read_kept(block.offset, out.first(block.bytes));
}

Status HashedStream::keep_block(const Block& block, std::span<const std::byte> bytes, const Digest& digest,
                                bool is_received) {
  {
    const MutexLock lock(mutex_);
    if (is_sealed_ || kept_[block.number]) return {};
    writers_ += 1;
  }
  Status status = keep(block.offset, bytes);
  {
    const MutexLock lock(mutex_);
    writers_ -= 1;
    idle_.notify_all();
    if (status.ok() && !kept_[block.number]) {
      kept_[block.number] = true;
      digests_[block.number] = digest;
      kept_bytes_ += bytes.size();
      if (is_received) received_ += bytes.size();
      is_kept(block.offset, bytes);
    }
  }
  return status.ok() ? status : fail(std::move(status));
}

Status HashedStream::fail(Status problem) {
  const MutexLock lock(mutex_);
  if (problem_.ok()) problem_ = problem;
  return corrupt("{}", problem.message());
}

void HashedStream::seal() {
  const MutexLock lock(mutex_);
  is_sealed_ = true;
  while (writers_ > 0) idle_.wait(mutex_, Deadline::after(1s));
}

}  // namespace stoker::stage
