// SHA-256 of two streams in step: where the processor has instructions for it, two at once take little longer
// than one. Bytes are queued, and hashed when somebody else's are there too. Thread-compatible.
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

  /// Queues bytes. They must stay where they are until the queue is empty.
  void add(std::span<const std::byte> bytes);
  /// The text ends here: its hash will be the next of digests(), and another text begins.
  void end();
  bool is_empty() const;

  /// Hashes all that is queued.
  void run();
  /// Hashes what is queued in both, in step, until one of them is empty.
  static void run_both(Sha256Lane& one, Sha256Lane& two);

  /// Of the texts that have ended and were hashed.
  const std::vector<Digest>& digests() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace stoker
