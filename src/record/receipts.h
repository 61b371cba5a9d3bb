// The samples that each step of a rank consumed, if `record.receipts` is set: proof that an interrupted and
// resumed training used every sample exactly once. Format: docs/formats/receipts.md. A writer belongs to one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::record {

/// Maximum number of samples in one step of one rank.
inline constexpr std::uint32_t kMaxReceiptSamples = 1u << 24;

/// Appends receipts to one file, one write(2) per step.
class ReceiptWriter {
 public:
  ReceiptWriter() = default;
  /// Creates the file. Exists if it exists.
  static Result<ReceiptWriter> create(const Path& file);

  /// REQUIRES: at most kMaxReceiptSamples samples. A default-constructed writer ignores receipts, and so does
  /// one after a failed write (disk full): data after half a receipt would be misread.
  Status append(std::uint32_t epoch, std::uint32_t step, std::span<const std::uint64_t> samples);

 private:
  explicit ReceiptWriter(File file) : file_(std::move(file)) {}

  File file_;
  std::vector<std::byte> buffer_;
};

struct Receipt {
  std::uint32_t epoch = 0;
  std::uint32_t step = 0;
  std::vector<std::uint64_t> samples;
};

struct ReceiptLog {
  std::vector<Receipt> receipts;
  bool torn = false;  ///< the last receipt is incomplete and was skipped
};

/// Reads a whole file. NotFound if it does not exist, Corrupt if a count is impossible.
Result<ReceiptLog> read_receipts(const Path& file);

}  // namespace stoker::record
