// Converts a row of columns to a sample: docs/formats/mds-litdata.md. Used by stream_scan. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "archive/streams/stream_index.h"
#include "archive/streams/stream_rows.h"
#include "archive/streams/stream_values.h"
#include "archive/tar.h"
#include "archive/tfrecord.h"
#include "base/file.h"
#include "sources/shard_scan.h"
#include "stoker/status.h"

namespace stoker::sources {

class StreamRowConverter {
 public:
  /// `converted`: receives columns that need conversion to files; null: such columns are an error, and
  /// numbers are skipped. All arguments must outlive it.
  StreamRowConverter(const std::vector<archive::StreamColumn>& columns, archive::ReadAt read, File* converted,
                     std::string subject);

  /// Counts fields without a file, label or key in `skipped_fields`.
  Result<ShardSample> sample(const std::vector<archive::StreamValue>& values, const std::string& fallback_key,
                             SkippedFields& skipped_fields);
  /// Writes the buffered data.
  Status finish();

 private:
  using Column = archive::StreamColumn;

  Status add_value(const Column& column, const archive::StreamValue& value, archive::ExampleRecord& record);
  Status add_converted(const Column& column, const archive::StreamValue& value,
                       archive::ExampleRecord& record);
  Status add_number(const Column& column, const archive::StreamValue& value, archive::ExampleRecord& record,
                    SkippedFields& skipped_fields);
  void add_to_numbers(const Column& column, std::string_view text);
  Status add_list(const Column& column, const archive::StreamValue& value, ShardSample& sample);
  Result<std::span<const std::byte>> bytes_of(const archive::StreamValue& value);
  void put(std::string name, std::string_view first, std::span<const std::byte> second,
           archive::ExampleRecord& record);
  Status read_any(std::uint64_t offset, std::span<std::byte> out) const;

  const std::vector<Column>& columns_;
  archive::ReadAt read_;
  File* converted_;
  std::string subject_;
  const Column* label_ = nullptr;
  std::string numbers_name_;  // of the JSON component for numbers
  std::string numbers_;       // of the current sample
  std::vector<std::byte> value_;
  std::string pending_;  // converted, not yet written
  std::uint64_t written_ = 0;
};

}  // namespace stoker::sources
