// Locates the values in the samples of one MDS shard or LitData chunk. The formats differ only in the data
// between offsets and first sample, and in that LitData stores a size for every value. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "archive/streams/stream_index.h"
#include "archive/tar.h"
#include "stoker/status.h"

namespace stoker::archive {

struct StreamValue {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_missing = false;  ///< StreamLayout::unpacked_table: a null
};

/// The size of a null in samples from the rows of a table.
constexpr std::uint32_t kNullStreamValue = 0xFFFFFFFF;

/// The start of each sample, and the end of the last: one more than samples.
using StreamOffsets = std::vector<std::uint64_t>;

/// Reads the offsets at the start of a file of `size` bytes. Corrupt unless they ascend and are inside the
/// file.
Result<StreamOffsets> read_stream_offsets(const ReadAt& read, std::uint64_t size, const std::string& subject);

/// The JSON of an MDS shard with its columns.
Result<std::string> read_mds_config(const ReadAt& read, const StreamOffsets& offsets,
                                    const std::string& subject);

/// Returns the values of samples, one for each column.
class StreamRows {
 public:
  /// `columns` must outlive it.
  StreamRows(ReadAt read, StreamOffsets offsets, const std::vector<StreamColumn>& columns,
             StreamLayout layout, std::string subject)
      : read_(std::move(read)),
        offsets_(std::move(offsets)),
        columns_(columns),
        layout_(layout),
        subject_(std::move(subject)) {}

  std::uint64_t samples() const { return offsets_.size() - 1; }
  /// Valid until the next call. Corrupt if the sizes do not add up to the sample's.
  Result<const std::vector<StreamValue>*> values(std::uint64_t sample);

 private:
  ReadAt read_;
  StreamOffsets offsets_;
  const std::vector<StreamColumn>& columns_;
  StreamLayout layout_;
  std::string subject_;
  std::vector<std::uint32_t> sizes_;
  std::vector<StreamValue> values_;
};

}  // namespace stoker::archive
