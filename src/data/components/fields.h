// Single values out of a sample's own JSON, CSV or text file. Used by the loader. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"

namespace stoker::data {

enum class FieldKind { number, integer, text };

/// One value of each sample.
struct Field {
  std::string component = "json";  ///< json, csv, tsv or any other, which is then text
  /// The key in JSON, with dots between levels ("camera.height"); the column in CSV, whose first line has the
  /// names and which has one more line; empty: all of the file, as text.
  std::string name;
  FieldKind kind = FieldKind::number;

  bool operator==(const Field&) const = default;
};

using FieldValue = std::variant<double, std::int64_t, std::string>;

/// The values of `fields`, which all are of the component that `file` is, in that order. Fails with Corrupt
/// when the file is not of its kind, or has no such field or one of another kind.
Result<std::vector<FieldValue>> read_fields(std::span<const std::byte> file, std::span<const Field> fields);

}  // namespace stoker::data
