// Images and histograms that programs log (stoker.log_image, stoker.log_histogram, MetricLog), one a line of
// JSON. Format: docs/formats/media.md. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::record {

inline constexpr std::size_t kMostBins = 512;
inline constexpr std::size_t kMostImageBytes = 4u << 20;
inline constexpr std::uint32_t kLongestImageSide = 8192;  ///< pixels
/// Of a line: an image in base64, with its name.
inline constexpr std::size_t kLongestMediaLine = 6u << 20;

/// How values are distributed: counts in bins of equal width between the lowest and the highest one.
struct ValueHistogram {
  double lowest = 0;
  double highest = 0;
  double sum = 0;
  double sum_squares = 0;
  std::uint64_t not_finite = 0;       ///< values that are NaN or infinite, and in no bin
  std::vector<std::uint64_t> counts;  ///< by bin

  std::uint64_t count() const;
  /// The left end of `bin`; of one bin more, the right end of the last one.
  double edge(std::size_t bin) const;
  /// The value below which `share` of the values are, as far as the bins tell. NaN without a value.
  double quantile(double share) const;
};

/// A PNG or JPEG file.
struct LoggedImage {
  std::string type;  ///< "png", "jpeg"
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::string bytes;
};

struct MediaRecord {
  double time = 0;  ///< Unix seconds; 0: unknown
  std::int64_t step = 0;
  std::string name;
  std::variant<ValueHistogram, LoggedImage> content;

  const ValueHistogram* histogram() const { return std::get_if<ValueHistogram>(&content); }
  const LoggedImage* image() const { return std::get_if<LoggedImage>(&content); }
};

/// Counts the values. Invalid without a value, and for bins not from 1 to kMostBins. Equal values have one
/// bin.
Result<ValueHistogram> histogram_of(std::span<const double> values, int bins);
Result<ValueHistogram> histogram_of(std::span<const float> values, int bins);
/// Reads the header of a PNG or JPEG file. Invalid for other bytes and beyond the limits.
Result<LoggedImage> image_of(std::span<const std::byte> file);

/// The record as a line with its line feed. REQUIRES: a valid name (check_metric_name).
std::string media_line(const MediaRecord& record);
/// Nullopt for a damaged line.
std::optional<MediaRecord> parse_media(std::string_view line);

/// A file of one rank: media-<rank>[-<writer>].jsonl.
struct MediaFile {
  Path path;
  int rank = 0;
  std::string writer;
};
std::string media_file_name(int rank, std::string_view writer);
/// The files of an attempt, by rank. Empty if the folder cannot be read.
std::vector<MediaFile> list_media_files(const Attempt& attempt);

/// Calls `visit` with each record of the file and gives the number of damaged lines. An absent file is
/// empty.
std::size_t visit_media(const Path& file, const std::function<void(MediaRecord&&)>& visit);

}  // namespace stoker::record
