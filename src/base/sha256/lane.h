// SHA-256 of two streams in lockstep: the processor's instructions hash two streams in little more time than
// one. Bytes are queued until another lane has bytes, too. Thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"

namespace stoker {

class Sha256Lane {
 public:
  Sha256Lane();
  ~Sha256Lane();
  Sha256Lane(Sha256Lane&&) noexcept;
  Sha256Lane& operator=(Sha256Lane&&) noexcept;

  /// Queues bytes, which must stay valid until the queue is empty.
  void add(std::span<const std::byte> bytes);
  /// Ends the current text, whose hash is appended to digests(), and begins another one.
  void end();
  bool is_empty() const;

  /// Hashes all queued bytes.
  void run();
  /// Hashes the queued bytes of both lanes in lockstep until one queue is empty.
  static void run_both(Sha256Lane& one, Sha256Lane& two);

  /// Hashes of all finished texts.
  const std::vector<Digest>& digests() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace stoker
