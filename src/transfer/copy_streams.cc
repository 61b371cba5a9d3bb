#include "transfer/copy_streams.h"

#include <algorithm>

#include "dataset/shard_source.h"

namespace stoker::transfer {
namespace {

// Large enough that a slow answer costs little, small enough for several streams per shard.
constexpr std::uint64_t kBlocksPerPiece = 8;
constexpr std::uint64_t kProgressUnit = 1'000'000;
constexpr int kSendAttempts = 2;

}  // namespace

CopyStreams::CopyStreams(const CopyRequest& request, std::vector<CopyStream>& streams, Progress& progress)
    : request_(request), streams_(streams), progress_(progress) {}

std::string CopyStreams::streams_note() {
  const MutexLock lock(mutex_);
  return note_;
}

Status CopyStreams::run() {
  const auto& files = request_.plan.files;
  {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i + 1 < files.size(); ++i) {
      std::uint64_t first = 0;
      do {  // an empty file has one piece without blocks
        const std::uint64_t count = std::min(kBlocksPerPiece, files[i].block_count() - first);
        waiting_.push_back({.file = i, .range = {first, count}});
        first += count;
      } while (first < files[i].block_count());
    }
  }
  STOKER_RETURN_IF_ERROR(run_round());
  {
    const MutexLock lock(mutex_);
    const std::uint64_t blocks = files.back().block_count();
    for (std::uint64_t first = 0; first < blocks; first += kBlocksPerPiece)
      waiting_.push_back(
          {.file = files.size() - 1, .range = {first, std::min(kBlocksPerPiece, blocks - first)}});
  }
  return run_round();
}

// Copies what waits, with all streams. Repeats it while a lost stream has left a piece and others live.
Status CopyStreams::run_round() {
  for (;;) {
    std::size_t wanted = 0;
    {
      const MutexLock lock(mutex_);
      if (waiting_.empty()) return {};
      if (streams_.empty()) return lost_;
      wanted = std::min<std::size_t>(static_cast<std::size_t>(request_.streams), waiting_.size());
    }
    const std::size_t existing = streams_.size();
    const std::size_t count = has_opened_ ? existing : std::max(wanted, existing);
    has_opened_ = true;
    streams_.resize(count);
    const auto is_lost = std::make_unique<bool[]>(count);
    {
      std::vector<Thread> threads;
      for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([this, i, existing, &is_lost](const StopToken&) {
          if (i >= existing) {
            auto opened = request_.open();
            if (!opened.ok()) {
              is_lost[i] = true;
              const MutexLock lock(mutex_);
              note_ = std::string(opened.status().message());
              return;
            }
            streams_[i] = std::move(*opened);
          }
          work(streams_[i], &is_lost[i]);
        });
      }
      for (Thread& thread : threads) thread.join();
    }
    std::vector<CopyStream> living;
    for (std::size_t i = 0; i < count; ++i) {
      if (i >= existing && streams_[i].source) opened_ += 1;
      if (!is_lost[i]) living.push_back(std::move(streams_[i]));
    }
    streams_ = std::move(living);
    const MutexLock lock(mutex_);
    STOKER_RETURN_IF_ERROR(problem_);
  }
}

void CopyStreams::work(CopyStream& stream, bool* is_lost) {
  Piece piece;
  while (next(&piece)) {
    const Status status = copy(stream, piece);
    if (status.ok()) continue;
    const MutexLock lock(mutex_);
    if (status.code() == Code::unavailable && !progress_.stop_requested()) {
      waiting_.push_front(piece);
      lost_ = status;
      *is_lost = true;
    } else if (problem_.ok()) {
      problem_ = status;
    }
    return;
  }
}

bool CopyStreams::next(Piece* piece) {
  const MutexLock lock(mutex_);
  if (progress_.stop_requested() && problem_.ok())
    problem_ = cancelled("{}: interrupted", request_.target_name);
  if (waiting_.empty() || !problem_.ok()) return false;
  *piece = waiting_.front();
  waiting_.pop_front();
  return true;
}

Status CopyStreams::copy(CopyStream& stream, const Piece& piece) {
  const PlannedFile& file = request_.plan.files[piece.file];
  if (piece.range.count == 0) {  // an empty file
    const std::string path = request_.target_folder + "/" + file.name;
    STOKER_RETURN_IF_ERROR(stream.target->put(path, 0, ""));
    return stream.target->hashes(path, {}).status();
  }
  std::vector<Digest> wanted(piece.range.count);
  STOKER_ASSIGN_OR_RETURN(missing, missing_blocks(stream, piece, wanted));
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < piece.range.count; ++i) {
    if (!std::binary_search(missing.begin(), missing.end(), i)) found += file.bytes_of(piece.range.first + i);
  }
  found_bytes_ += found;
  report(found);
  for (int attempt = 1; !missing.empty(); ++attempt) {
    STOKER_RETURN_IF_ERROR(send(stream, piece, missing, wanted));
    const std::string path = request_.target_folder + "/" + file.name;
    const BlockRange range{piece.range.first + missing.front(), missing.back() - missing.front() + 1};
    STOKER_ASSIGN_OR_RETURN(stored, stream.target->hashes(path, range));
    std::vector<std::uint64_t> wrong;
    for (const std::uint64_t i : missing) {
      if (stored[i - missing.front()] != wanted[i]) wrong.push_back(i);
    }
    if (attempt == kSendAttempts && !wrong.empty()) {
      return corrupt("{}: block {} of {} differs there after it was sent {} times", request_.target_name,
                     piece.range.first + wrong.front(), printable(file.name), kSendAttempts);
    }
    missing = std::move(wrong);
  }
  return {};
}

// Which blocks of the piece the target does not have, counted within it. Sets the hashes of all other blocks.
Result<std::vector<std::uint64_t>> CopyStreams::missing_blocks(CopyStream& stream, const Piece& piece,
                                                               std::vector<Digest>& wanted) {
  const PlannedFile& file = request_.plan.files[piece.file];
  std::vector<std::uint64_t> missing;
  const std::uint64_t size = request_.earlier[piece.file];
  const std::uint64_t whole = size == file.bytes ? file.block_count() : size / kBlock;
  // Blocks that may be there.
  const std::uint64_t count =
      whole > piece.range.first ? std::min(piece.range.count, whole - piece.range.first) : 0;
  if (count > 0) {
    STOKER_ASSIGN_OR_RETURN(
        stored, stream.target->hashes(request_.target_folder + "/" + file.name, {piece.range.first, count}));
    for (std::uint64_t i = 0; i < count; ++i) {
      if (file.has_sha256()) {
        wanted[i] = file.blocks[piece.range.first + i];
      } else {
        STOKER_RETURN_IF_ERROR(read_block(stream, file, piece.range.first + i, &wanted[i]).status());
      }
      if (stored[i] != wanted[i]) missing.push_back(i);
    }
  }
  for (std::uint64_t i = count; i < piece.range.count; ++i) missing.push_back(i);
  return missing;
}

Status CopyStreams::send(CopyStream& stream, const Piece& piece, const std::vector<std::uint64_t>& blocks,
                         std::vector<Digest>& wanted) {
  const PlannedFile& file = request_.plan.files[piece.file];
  for (const std::uint64_t i : blocks) {
    if (progress_.stop_requested()) return cancelled("{}: interrupted", request_.target_name);
    STOKER_ASSIGN_OR_RETURN(bytes, read_block(stream, file, piece.range.first + i, &wanted[i]));
    STOKER_RETURN_IF_ERROR(
        stream.target->put(request_.target_folder + "/" + file.name, piece.range.first + i, bytes));
    sent_bytes_ += bytes.size();
    report(bytes.size());
  }
  return {};
}

// A block of the source, compared with the manifest.
Result<std::string> CopyStreams::read_block(CopyStream& stream, const PlannedFile& file, std::uint64_t block,
                                            Digest* digest) const {
  STOKER_ASSIGN_OR_RETURN(
      bytes, stream.source->get(request_.source_folder + "/" + file.name, block, file.bytes_of(block)));
  const auto view = std::as_bytes(std::span(bytes.data(), bytes.size()));
  *digest = sha256(view);
  if (file.blocks.empty()) return bytes;
  const Digest found = file.has_sha256() ? *digest : dataset::block_digest(file.hash, view);
  if (found == file.blocks[block]) return bytes;
  return corrupt("{}: block {} of {} has the hash {}, the manifest lists {}", request_.source_name, block,
                 printable(file.name), dataset::short_hash(found), dataset::short_hash(file.blocks[block]));
}

void CopyStreams::report(std::uint64_t bytes) {
  const std::uint64_t done = done_bytes_ += bytes;
  progress_.report({.done = done / kProgressUnit,
                    .total = request_.plan.bytes / kProgressUnit,
                    .unit = "MB",
                    .bytes = {sent_bytes_.load()}});
}

}  // namespace stoker::transfer
