// Single values from the JSON, CSV or text file of a sample. Used by the loader. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "stoker/status.h"

namespace stoker::loader {

enum class FieldKind { number, integer, text };

/// One value of each sample.
struct ComponentField {
  std::string component = "json";  ///< json, csv, tsv, or any other, read as text
  /// The key in JSON, with dots between levels ("camera.height"), or the column in CSV, which has a header
  /// and one line of values. Empty: the whole file as text.
  std::string name;
  FieldKind kind = FieldKind::number;

  bool operator==(const ComponentField&) const = default;
};

using FieldValue = std::variant<double, std::int64_t, std::string>;

/// The values of `fields` in `file`, in that order. All fields belong to the component of the file. Fails
/// with Corrupt when the file does not parse, or a field is missing or of a different kind.
Result<std::vector<FieldValue>> read_fields(std::span<const std::byte> file,
                                            std::span<const ComponentField> fields);

}  // namespace stoker::loader
