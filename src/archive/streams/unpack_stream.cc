#include "archive/streams/unpack_stream.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

#include <zstd.h>

#include "base/language/counted.h"
#include "codec/load.h"
#include "stoker/bytes.h"

namespace stoker::archive {

namespace {

constexpr std::string_view kBatchesMagic("LDFZ01\0\0", 8);
constexpr std::size_t kHead = 24;
constexpr std::size_t kEntry = 24;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Unpacks runs of zstd frames, one after the other.
class StreamDecompressor {
 public:
  StreamDecompressor(const StreamFile& from, StreamTarget to)
      : read_(from.read),
        most_(to.most),
        out_(to.file),
        subject_(from.subject),
        piece_(ZSTD_DStreamOutSize()) {}

  /// Returns the unpacked size.
  Result<std::uint64_t> run(std::uint64_t offset, std::uint64_t bytes) {
    packed_.resize(bytes);
    STOKER_RETURN_IF_ERROR(read_(offset, packed_));
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
        return no_space("{}: unpacks to over {}, more than the free space", subject_, rounded({most_}));
      STOKER_RETURN_IF_ERROR(out_.write(std::span(piece_).first(output.pos)));
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

Result<StreamOffsets> unpack_samples(const StreamFile& from, StreamDecompressor& decompressor,
                                     const Progress& progress) {
  const std::string& subject = from.subject;
  STOKER_ASSIGN_OR_RETURN(packed, read_stream_offsets(from.read, from.size, subject));
  StreamOffsets offsets = {0};
  for (std::size_t i = 0; i + 1 < packed.size(); ++i) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
    STOKER_ASSIGN_OR_RETURN(bytes, decompressor.run(packed[i], packed[i + 1] - packed[i]));
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
  STOKER_RETURN_IF_ERROR(read(0, head));
  const std::string_view magic(reinterpret_cast<const char*>(head.data()), kBatchesMagic.size());
  if (magic != kBatchesMagic) return corrupt("{}: is not a chunk of packed batches", subject);
  if (const auto version = codec::load<std::uint16_t>(head, 8); version != 1)
    return invalid("{}: is of version {} of packed batches; 1 is supported", subject, version);
  const std::uint64_t samples = codec::load<std::uint32_t>(head, 12);
  const std::uint64_t batches = codec::load<std::uint32_t>(head, 20);
  const std::uint64_t offsets = (samples + 1) * kStreamWord;
  if (samples == 0 || offsets + batches * kEntry > size - kHead)
    return corrupt("{}: claims {} (batches: {}) in {} bytes", subject, counted(samples, "sample"), batches,
                   size);
  std::vector<std::uint32_t> words(samples + 1);
  STOKER_RETURN_IF_ERROR(read(kHead, std::as_writable_bytes(std::span(words))));
  Batches all{.offsets = StreamOffsets(words.begin(), words.end()),
              .table = std::vector<std::byte>(batches * kEntry)};
  if (words.front() != 0 || !std::is_sorted(words.begin(), words.end()))
    return corrupt("{}: its offsets do not ascend from 0", subject);
  STOKER_RETURN_IF_ERROR(read(kHead + offsets, all.table));
  return all;
}

Result<StreamOffsets> unpack_batches(const StreamFile& from, StreamDecompressor& decompressor,
                                     const Progress& progress) {
  const auto& [read, size, subject] = from;
  STOKER_ASSIGN_OR_RETURN(all, read_batches(from));
  std::uint64_t sample = 0;
  std::uint64_t at = 0;
  for (std::size_t entry = 0; entry < all.table.size(); entry += kEntry) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
    const std::uint64_t count = codec::load<std::uint32_t>(all.table, entry + 4);
    const auto offset = codec::load<std::uint64_t>(all.table, entry + 8);
    const std::uint64_t packed = codec::load<std::uint32_t>(all.table, entry + 16);
    const std::uint64_t bytes = codec::load<std::uint32_t>(all.table, entry + 20);
    const std::uint64_t samples = all.offsets.size() - 1;
    if (codec::load<std::uint32_t>(all.table, entry) != sample || count > samples - sample || offset > size ||
        packed > size - offset || all.offsets[sample + count] != at + bytes)
      return corrupt("{}: batch {} does not fit the samples", subject, entry / kEntry);
    STOKER_ASSIGN_OR_RETURN(found, decompressor.run(offset, packed));
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
  StreamDecompressor decompressor(from, to);
  if (layout == StreamLayout::zstd_samples) return unpack_samples(from, decompressor, progress);
  return unpack_batches(from, decompressor, progress);
}

}  // namespace stoker::archive
