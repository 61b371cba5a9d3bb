// LitData's chunks whose samples are packed inside the file, one by one or in batches:
//
//   LDFZ01\0\0, u16 version 1, u16 0, u32 samples, u32 samples of a batch, u32 batches
//   u32 offsets[samples + 1] in what is unpacked
//   batches: u32 first sample, u32 samples, u64 offset, u32 packed bytes, u32 unpacked bytes
#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

#include <zstd.h>

#include "base/bytes.h"
#include "format/load.h"
#include "format/streams/stream_rows.h"

namespace stoker::formats {

namespace {

constexpr std::string_view kBatchesMagic("LDFZ01\0\0", 8);
constexpr std::size_t kHead = 24;
constexpr std::size_t kEntry = 24;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Unpacks one run of zstd frames after the other.
class Unpacking {
 public:
  Unpacking(const StreamFile& from, StreamTarget to)
      : read_(from.read),
        most_(to.most),
        out_(to.file),
        subject_(from.subject),
        piece_(ZSTD_DStreamOutSize()) {}

  /// How many bytes it was.
  Result<std::uint64_t> run(std::uint64_t offset, std::uint64_t bytes) {
    packed_.resize(bytes);
    RETURN_IF_ERROR(read_(offset, packed_));
    if (!context_) context_.reset(ZSTD_createDCtx());
    if (!context_) return unavailable("{}: no memory to unpack it", subject_);
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    const std::uint64_t before = written_;
    ZSTD_inBuffer input{packed_.data(), packed_.size(), 0};
    for (std::size_t left = 1; input.pos < input.size || left != 0;) {
      ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
      const std::size_t from = input.pos;
      left = ZSTD_decompressStream(context_.get(), &output, &input);
      if (ZSTD_isError(left) != 0)
        return corrupt("{}: byte {}: {}", subject_, offset + from, ZSTD_getErrorName(left));
      if (output.pos == 0 && input.pos == from)
        return corrupt("{}: byte {}: zstd data ends inside a frame", subject_, offset + input.size);
      if (output.pos > most_ - written_)
        return no_space("{}: unpacks to over {}, more than is free for it", subject_, rounded({most_}));
      RETURN_IF_ERROR(out_.write(std::span(piece_).first(output.pos)));
      written_ += output.pos;
    }
    return written_ - before;
  }

 private:
  const ReadAt& read_;
  std::uint64_t most_;
  File& out_;
  const std::string& subject_;
  std::vector<std::byte> piece_;
  std::vector<std::byte> packed_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  std::uint64_t written_ = 0;
};

Result<StreamOffsets> unpack_samples(const StreamFile& from, Unpacking& unpacking, const Progress& progress) {
  const std::string& subject = from.subject;
  OK_OR_RETURN(packed, read_stream_offsets(from.read, from.size, subject));
  StreamOffsets offsets = {0};
  for (std::size_t i = 0; i + 1 < packed.size(); ++i) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
    OK_OR_RETURN(bytes, unpacking.run(packed[i], packed[i + 1] - packed[i]));
    offsets.push_back(offsets.back() + bytes);
  }
  return offsets;
}

struct Batches {
  StreamOffsets offsets;
  std::vector<std::byte> table;
};

Result<Batches> read_batches(const StreamFile& from) {
  const auto& [read, size, subject] = from;
  std::vector<std::byte> head(kHead);
  if (size < kHead) return corrupt("{}: has {} bytes: no samples", subject, size);
  RETURN_IF_ERROR(read(0, head));
  const std::string_view magic(reinterpret_cast<const char*>(head.data()), kBatchesMagic.size());
  if (magic != kBatchesMagic) return corrupt("{}: does not begin as a chunk of packed batches does", subject);
  if (const auto version = load<std::uint16_t>(head, 8); version != 1)
    return invalid("{}: is of version {} of packed batches; 1 is read", subject, version);
  const std::uint64_t samples = load<std::uint32_t>(head, 12);
  const std::uint64_t batches = load<std::uint32_t>(head, 20);
  const std::uint64_t offsets = (samples + 1) * kStreamWord;
  if (samples == 0 || offsets + batches * kEntry > size - kHead)
    return corrupt("{}: says that it has {} samples in {} batches, in {} bytes", subject, samples, batches,
                   size);
  std::vector<std::uint32_t> words(samples + 1);
  RETURN_IF_ERROR(read(kHead, std::as_writable_bytes(std::span(words))));
  Batches all{.offsets = StreamOffsets(words.begin(), words.end()),
              .table = std::vector<std::byte>(batches * kEntry)};
  if (words.front() != 0 || !std::is_sorted(words.begin(), words.end()))
    return corrupt("{}: its offsets do not ascend from 0", subject);
  RETURN_IF_ERROR(read(kHead + offsets, all.table));
  return all;
}

Result<StreamOffsets> unpack_batches(const StreamFile& from, Unpacking& unpacking, const Progress& progress) {
  const auto& [read, size, subject] = from;
  OK_OR_RETURN(all, read_batches(from));
  std::uint64_t sample = 0;
  std::uint64_t at = 0;
  for (std::size_t entry = 0; entry < all.table.size(); entry += kEntry) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
    const std::uint64_t count = load<std::uint32_t>(all.table, entry + 4);
    const auto offset = load<std::uint64_t>(all.table, entry + 8);
    const std::uint64_t packed = load<std::uint32_t>(all.table, entry + 16);
    const std::uint64_t bytes = load<std::uint32_t>(all.table, entry + 20);
    const std::uint64_t samples = all.offsets.size() - 1;
    if (load<std::uint32_t>(all.table, entry) != sample || count > samples - sample || offset > size ||
        packed > size - offset || all.offsets[sample + count] != at + bytes)
      return corrupt("{}: batch {} does not fit the samples", subject, entry / kEntry);
    OK_OR_RETURN(found, unpacking.run(offset, packed));
    if (found != bytes)
      return corrupt("{}: batch {} unpacks to {} bytes, expected {}", subject, entry / kEntry, found, bytes);
    sample += count;
    at += bytes;
  }
  if (sample + 1 != all.offsets.size())
    return corrupt("{}: its batches have {} of {} samples", subject, sample, all.offsets.size() - 1);
  return std::move(all.offsets);
}

}  // namespace

Result<StreamOffsets> unpack_stream(const StreamFile& from, StreamLayout layout, StreamTarget to,
                                    const Progress& progress) {
  Unpacking unpacking(from, to);
  if (layout == StreamLayout::zstd_samples) return unpack_samples(from, unpacking, progress);
  return unpack_batches(from, unpacking, progress);
}

}  // namespace stoker::formats
