// Reads a file or a pipe from start to end and decompresses gzip and zstd. Used to read logs. An object
// belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::archive {

enum class CompressionFormat { none, gzip, zstd };

/// Detects the format from the first four bytes. zstd data may begin with a skippable frame, as from pzstd.
CompressionFormat detect_compression(std::span<const std::byte> beginning);
/// Whether a frame begins there that decompressors skip. zstd and LZ4 share these frames.
bool is_skippable_frame(std::span<const std::byte> beginning);

/// Fills the span with the next bytes and returns their number; fewer than requested only at the end.
using ByteSource = std::function<Result<std::size_t>(std::span<std::byte>)>;

/// Returns the decompressed content in pieces of about 1 MiB. Memory is bounded by that and by the window of
/// the compression.
class DecompressingReader {
 public:
  /// Reads the file up to its current size; later appends are ignored. The file must outlive the reader.
  static Result<DecompressingReader> open(const File& file, CompressionFormat compression);
  /// Reads any source; `name` is its name in errors.
  static Result<DecompressingReader> open(std::string name, ByteSource source, CompressionFormat compression);
  DecompressingReader(DecompressingReader&&) noexcept;
  DecompressingReader& operator=(DecompressingReader&&) noexcept;
  ~DecompressingReader();

  /// The next piece, valid until the next call; empty at the end. Returns all that can be decompressed first,
  /// then Corrupt "<name>: byte N: ..." for damaged data, "<name>: ends inside ..." for truncated data or
  /// "<name>: N bytes after the end of the gzip data ..."; zeros there are padding.
  Result<std::span<const std::byte>> next();

  /// Bytes read so far, and the size of the input; 0 where unknown.
  std::uint64_t offset() const;
  std::uint64_t size() const;

 private:
  struct State;
  explicit DecompressingReader(std::unique_ptr<State> state);
  Result<std::span<const std::byte>> next_zstd();
  Result<std::span<const std::byte>> next_gzip();

  std::unique_ptr<State> state_;
};

}  // namespace stoker::archive
