// The samples of one MDS shard or LitData chunk: where each value lies. The two differ only in what stands
// between their offsets and the first sample, and in that all of LitData's values have a size before them.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "format/streams/stream_index.h"
#include "format/tar.h"

namespace stoker::formats {

struct StreamValue {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_missing = false;  ///< StreamLayout::unpacked_table: a null
};

/// Stands for the size of a null where samples were rows of a table.
constexpr std::uint32_t kNoStreamValue = 0xFFFFFFFF;

/// Where samples begin, and behind the last of them: one more than there are samples.
using StreamOffsets = std::vector<std::uint64_t>;

/// What stands before the samples of a file of `size` bytes, in ascending order and inside it. Corrupt for
/// anything else.
Result<StreamOffsets> read_stream_offsets(const ReadAt& read, std::uint64_t size, const std::string& subject);

/// The JSON with which an MDS shard describes its columns.
Result<std::string> read_mds_config(const ReadAt& read, const StreamOffsets& offsets,
                                    const std::string& subject);

/// A chunk to be read.
struct StreamFile {
  ReadAt read;
  std::uint64_t size = 0;
  std::string subject;  ///< begins messages
};

/// Where unpacked samples go.
struct StreamTarget {
  File& file;
  std::uint64_t most = 0;  ///< bytes that may be written
};

/// Writes the samples of a LitData chunk whose samples are packed inside it (StreamLayout::zstd_samples,
/// zstd_batches), and gives their offsets in the target. Corrupt for damage, NoSpace beyond its most,
/// Cancelled when `progress` says stop.
Result<StreamOffsets> unpack_stream(const StreamFile& from, StreamLayout layout, StreamTarget to,
                                    const Progress& progress);

/// The rows of a table as samples of StreamLayout::unpacked_table.
struct StreamTable {
  StreamOffsets offsets;
  std::vector<StreamColumn> columns;
};

/// Writes the rows of the Arrow table at the end of a LitData chunk of so many samples; nothing where it has
/// none. Corrupt for damage, Invalid for types that are not read, NoSpace and Cancelled as above.
Result<std::optional<StreamTable>> unpack_stream_table(const StreamFile& from, std::uint64_t samples,
                                                       StreamTarget to, const Progress& progress);

/// Gives the values of one sample after the other, one for each column.
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
  /// Valid until the next call. Corrupt for sizes that do not add up to the sample's.
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

}  // namespace stoker::formats
