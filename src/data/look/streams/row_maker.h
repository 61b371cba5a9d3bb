// Turns one row of columns into a sample: docs/formats/mds-litdata.md. Used by stream_scan.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/look/shard_scan.h"
#include "format/streams/stream_index.h"
#include "format/streams/stream_rows.h"
#include "format/streams/stream_values.h"
#include "format/tar.h"
#include "format/tfrecord.h"

namespace stoker::data {

class RowMaker {
 public:
  /// `made`: where what is no file as it lies is made into one; null: such columns are an error, and numbers
  /// are passed over. All must outlive it.
  RowMaker(const std::vector<formats::StreamColumn>& columns, formats::ReadAt read, File* made,
           std::string subject);

  /// `not_taken` counts what makes no file, label or key.
  Result<ShardSample> sample(const std::vector<formats::StreamValue>& values, const std::string& fallback_key,
                             NotTaken& not_taken);
  /// Writes what is still held.
  Status finish();

 private:
  using Column = formats::StreamColumn;

  Status add_value(const Column& column, const formats::StreamValue& value, formats::ExampleRecord& record);
  Status add_made(const Column& column, const formats::StreamValue& value, formats::ExampleRecord& record);
  Status add_number(const Column& column, const formats::StreamValue& value, formats::ExampleRecord& record,
                    NotTaken& not_taken);
  void add_to_numbers(const Column& column, std::string_view text);
  Status add_list(const Column& column, const formats::StreamValue& value, ShardSample& sample);
  Result<std::span<const std::byte>> bytes_of(const formats::StreamValue& value);
  void put(std::string name, std::string_view first, std::span<const std::byte> second,
           formats::ExampleRecord& record);
  Status read_any(std::uint64_t offset, std::span<std::byte> out) const;

  const std::vector<Column>& columns_;
  formats::ReadAt read_;
  File* made_;
  std::string subject_;
  const Column* label_ = nullptr;
  std::string numbers_name_;  // of the JSON that has them
  std::string numbers_;       // of the sample at hand
  std::vector<std::byte> value_;
  std::string held_;  // made, not yet written
  std::uint64_t written_ = 0;
};

}  // namespace stoker::data
