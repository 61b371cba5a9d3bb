// Values of MDS and LitData that are no files as they lie: arrays, pixels, lists of files, nested objects.
// Bytes come from files that nobody vouches for. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"
#include "format/streams/stream_index.h"
#include "format/streams/stream_rows.h"

namespace stoker::formats {

struct ArrayValue {
  DType type = DType::f32;
  std::vector<std::uint64_t> shape;
  std::size_t data_at = 0;  ///< where the elements begin, which end with the value
};

/// REQUIRES: a column of kind array, numpy, tensor or elements. Corrupt for a value that is not as long as
/// its shape says; Invalid for types that no .npy file has.
Result<ArrayValue> read_array_value(const StreamColumn& column, std::span<const std::byte> value,
                                    const std::string& subject);

struct PixelValue {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::string mode;  ///< as Pillow calls it: "RGB"
  DType type = DType::u8;
  std::uint32_t channels = 1;
  std::size_t data_at = 0;
};

/// Corrupt for a value that is not as long as its size says; Invalid for modes whose pixels are no whole
/// bytes.
Result<PixelValue> read_pixel_value(std::span<const std::byte> value, const std::string& subject);

/// Where the files of a list lie. REQUIRES: a column of kind files or long_files.
Result<std::vector<StreamValue>> read_file_list(const StreamColumn& column, const StreamValue& value,
                                                const ReadAt& read, const std::string& subject);

/// LitData's lists and objects as JSON. What JSON has no word for (NaN) is null.
Result<std::string> nested_to_json(std::span<const std::byte> value, const std::string& subject);

/// A number as JSON writes it. REQUIRES: a column of kind integer, natural, real, boolean or digits.
Result<std::string> number_to_json(const StreamColumn& column, std::span<const std::byte> value,
                                   const std::string& subject);
/// The same as a label; nothing for fractions and what does not fit.
std::optional<std::int64_t> whole_number(const StreamColumn& column, std::span<const std::byte> value);

}  // namespace stoker::formats
