// Reads a file, or what comes through a pipe, from its start to its end, expanded on the way when it is gzip
// or zstd. Used where logs are read. An object belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace stoker::formats {

enum class Packing { none, gzip, zstd };

/// By the first bytes of a file; four are enough.
Packing packing_of(std::span<const std::byte> beginning);

/// Fills the span with what comes next, and less only at the end; how much that was.
using NextBytes = std::function<Result<std::size_t>(std::span<std::byte>)>;

/// Gives the content of a file in pieces of about 1 MiB, whatever lies in it. Memory is bounded by that and
/// by the window of the packing.
class ExpandingReader {
 public:
  /// Of the file as long as it is now: what is appended later is not read. The file must outlive it.
  static Result<ExpandingReader> open(const File& file, Packing packing);
  /// Of anything; `name` is how errors call it.
  static Result<ExpandingReader> open(std::string name, NextBytes source, Packing packing);
  ExpandingReader(ExpandingReader&&) noexcept;
  ExpandingReader& operator=(ExpandingReader&&) noexcept;
  ~ExpandingReader();

  /// The next piece, valid until the next call; empty at the end. Corrupt "<name>: byte N: ..." for damaged
  /// data and "<name>: ends inside ..." for what is cut off, after all that could be expanded was given.
  Result<std::span<const std::byte>> next();

  /// How much is read of it, and how long it is; 0 where that is not known.
  std::uint64_t offset() const;
  std::uint64_t size() const;

 private:
  struct State;
  explicit ExpandingReader(std::unique_ptr<State> state);
  Result<std::span<const std::byte>> next_of_zstd();
  Result<std::span<const std::byte>> next_of_gzip();

  std::unique_ptr<State> state_;
};

}  // namespace stoker::formats
