// Decodes values of MDS and LitData that are not plain files: arrays, pixels, lists of files, nested
// objects. The bytes are untrusted. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "archive/streams/stream_index.h"
#include "archive/streams/stream_rows.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::archive {

struct ArrayValue {
  DType type = DType::f32;
  std::vector<std::uint64_t> shape;
  std::size_t data_offset = 0;  ///< offset of the elements, which end with the value
};

/// REQUIRES: a column of kind array, numpy, tensor or elements. Corrupt for a value whose size contradicts
/// its shape; Invalid for types that .npy does not have.
Result<ArrayValue> read_array_value(const StreamColumn& column, std::span<const std::byte> value,
                                    const std::string& subject);

struct PixelValue {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::string mode;  ///< Pillow's name: "RGB"
  DType type = DType::u8;
  std::uint32_t channels = 1;
  std::size_t data_offset = 0;
};

/// Corrupt for a value whose size contradicts its width and height; Invalid for modes without whole bytes
/// per pixel.
Result<PixelValue> read_pixel_value(std::span<const std::byte> value, const std::string& subject);

/// Locates the files of a list. REQUIRES: a column of kind files or prefixed_files.
Result<std::vector<StreamValue>> read_file_list(const StreamColumn& column, const StreamValue& value,
                                                const ReadAt& read, const std::string& subject);

/// LitData's lists and objects as JSON. Numbers that JSON lacks (NaN) are null.
Result<std::string> nested_to_json(std::span<const std::byte> value, const std::string& subject);

/// A number as JSON. REQUIRES: a column of kind integer, unsigned_integer, floating, boolean or
/// decimal_text.
Result<std::string> number_to_json(const StreamColumn& column, std::span<const std::byte> value,
                                   const std::string& subject);
/// The same as a label; nothing for fractions and numbers out of range.
std::optional<std::int64_t> whole_number(const StreamColumn& column, std::span<const std::byte> value);

}  // namespace stoker::archive
