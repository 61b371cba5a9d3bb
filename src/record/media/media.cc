#include "record/media/media.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/encode.h"
#include "base/hash.h"
#include "image/decode/decode.h"
#include "record/json.h"
#include "record/lines.h"
#include "record/points/points.h"

namespace stoker::record {

namespace {

constexpr std::string_view kMediaStem = "media-";
constexpr std::string_view kMediaExtension = ".jsonl";

double clamped(double value) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return std::clamp(value, -kMost, kMost);
}

template <typename Number>
Result<ValueHistogram> count_values(std::span<const Number> values, int bins) {
  if (values.empty()) return invalid("there are no values");
  if (bins < 1 || static_cast<std::size_t>(bins) > kMostBins)
    return invalid("bins is {}, must be from 1 to {}", bins, kMostBins);
  ValueHistogram made;
  std::uint64_t finite = 0;
  for (const Number number : values) {
    const double value = number;
    if (!std::isfinite(value)) {
      ++made.not_finite;
      continue;
    }
    made.lowest = finite == 0 ? value : std::min(made.lowest, value);
    made.highest = finite == 0 ? value : std::max(made.highest, value);
    made.sum += value;
    made.sum_squares += value * value;
    ++finite;
  }
  made.sum = clamped(made.sum);
  made.sum_squares = clamped(made.sum_squares);
  made.counts.assign(made.lowest < made.highest ? static_cast<std::size_t>(bins) : 1, 0);
  const auto last = static_cast<double>(made.counts.size() - 1);
  // Halves: the difference of two numbers may be too large for a double.
  const double width = made.highest / 2 - made.lowest / 2;
  const double scale = width > 0 ? static_cast<double>(made.counts.size()) / width : 0;
  for (const Number number : values) {
    const double value = number;
    if (!std::isfinite(value)) continue;
    const double bin = std::isfinite(scale) ? (value / 2 - made.lowest / 2) * scale : 0;
    ++made.counts[static_cast<std::size_t>(std::clamp(bin, 0.0, last))];
  }
  return made;
}

Json json_of(const ValueHistogram& histogram) {
  return {{"lowest", histogram.lowest},
          {"highest", histogram.highest},
          {"sum", histogram.sum},
          {"sum_squares", histogram.sum_squares},
          {"not_finite", histogram.not_finite},
          {"counts", histogram.counts}};
}

// Whole numbers that a sum of all bins cannot overflow.
bool read_count(const Json& value, std::uint64_t* count) {
  constexpr std::uint64_t kMost = 1ULL << 53;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) return false;
  *count = value.get<std::uint64_t>();
  return true;
}

std::optional<ValueHistogram> parse_histogram(const Json& object) {
  ValueHistogram histogram;
  const auto counts = object.find("counts");
  if (counts == object.end() || !counts->is_array()) return std::nullopt;
  if (counts->empty() || counts->size() > kMostBins) return std::nullopt;
  for (const Json& each : *counts) {
    if (!read_count(each, &histogram.counts.emplace_back())) return std::nullopt;
  }
  if (const auto other = object.find("not_finite"); other != object.end()) {
    if (!read_count(*other, &histogram.not_finite)) return std::nullopt;
  }
  for (const auto& [key, number] :
       {std::pair("lowest", &histogram.lowest), {"highest", &histogram.highest}}) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number()) return std::nullopt;
    *number = found->get<double>();
  }
  histogram.sum = number_of(object, "sum");
  histogram.sum_squares = number_of(object, "sum_squares");
  for (const double number : {histogram.lowest, histogram.highest, histogram.sum, histogram.sum_squares}) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  if (histogram.lowest > histogram.highest) return std::nullopt;
  return histogram;
}

std::optional<LoggedImage> parse_image(const Json& object) {
  const auto bytes = decode_base64(text_of(object, "base64"));
  if (!bytes) return std::nullopt;
  const std::string sum = text_of(object, "crc32c");
  if (!sum.empty() && sum != format("{:08x}", crc32c(*bytes))) return std::nullopt;
  auto image = image_of(std::as_bytes(std::span(*bytes)));
  return image.ok() ? std::optional(*std::move(image)) : std::nullopt;
}

}  // namespace

std::uint64_t ValueHistogram::count() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t each : counts) sum += each;
  return sum;
}

double ValueHistogram::edge(std::size_t bin) const {
  const double share =
      static_cast<double>(bin) / static_cast<double>(std::max<std::size_t>(counts.size(), 1));
  return lowest * (1 - share) + highest * share;
}

double ValueHistogram::quantile(double share) const {
  const auto all = static_cast<double>(count());
  if (all == 0) return std::numeric_limits<double>::quiet_NaN();
  double before = 0;
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    const auto here = static_cast<double>(counts[bin]);
    if (here > 0 && before + here >= share * all) {
      const double part = std::clamp((share * all - before) / here, 0.0, 1.0);
      return std::clamp(edge(bin) * (1 - part) + edge(bin + 1) * part, lowest, highest);
    }
    before += here;
  }
  return highest;
}

Result<ValueHistogram> histogram_of(std::span<const double> values, int bins) {
  return count_values(values, bins);
}

Result<ValueHistogram> histogram_of(std::span<const float> values, int bins) {
  return count_values(values, bins);
}

Result<LoggedImage> image_of(std::span<const std::byte> file) {
  if (file.size() > kMostImageBytes) {
    return invalid("has {} bytes, at most {} are recorded", grouped(file.size()), grouped(kMostImageBytes))
        .cure("log a smaller image, or the bytes of a JPEG file");
  }
  const auto kind = image::image_kind(file);
  if (!kind.ok() || *kind == image::ImageKind::webp)
    return invalid("its bytes are neither a PNG nor a JPEG file");
  STOKER_ASSIGN_OR_RETURN(info, image::inspect_image(file));
  if (std::max(info.width, info.height) > kLongestImageSide) {
    return invalid("has {} x {} pixels, at most {} on a side are recorded", info.width, info.height,
                   kLongestImageSide)
        .cure("log a smaller image");
  }
  return LoggedImage{.type = *kind == image::ImageKind::png ? "png" : "jpeg",
                     .width = info.width,
                     .height = info.height,
                     .bytes = std::string(reinterpret_cast<const char*>(file.data()), file.size())};
}

std::string media_line(const MediaRecord& record) {
  Json head = {{"time", record.time}, {"step", record.step}, {"name", record.name}};
  if (const ValueHistogram* histogram = record.histogram()) {
    head["histogram"] = json_of(*histogram);
    return json_text(head) + "\n";
  }
  const LoggedImage& image = *record.image();
  std::string line = json_text(head);
  line.pop_back();
  line += format(R"(,"image":{{"type":"{}","width":{},"height":{},"crc32c":"{:08x}","base64":")", image.type,
                 image.width, image.height, crc32c(image.bytes));
  line += base64(std::as_bytes(std::span(image.bytes)));
  return line + "\"}}\n";
}

std::optional<MediaRecord> parse_media(std::string_view line) {
  const Json object = parse_json<Json>(line);
  if (!object.is_object()) return std::nullopt;
  MediaRecord record{.time = number_of(object, "time"),
                     .step = integer_of(object, "step", -1),
                     .name = text_of(object, "name")};
  if (record.step < 0 || !check_metric_name(record.name).ok() || !std::isfinite(record.time))
    return std::nullopt;
  const auto histogram = object.find("histogram");
  const auto image = object.find("image");
  if ((histogram == object.end()) == (image == object.end())) return std::nullopt;
  if (histogram != object.end()) {
    auto parsed = histogram->is_object() ? parse_histogram(*histogram) : std::nullopt;
    if (!parsed) return std::nullopt;
    record.content = *std::move(parsed);
    return record;
  }
  auto parsed = image->is_object() ? parse_image(*image) : std::nullopt;
  if (!parsed) return std::nullopt;
  record.content = *std::move(parsed);
  return record;
}

std::string media_file_name(int rank, std::string_view writer) {
  return format("{}{:04}{}{}{}", kMediaStem, rank, writer.empty() ? "" : "-", writer, kMediaExtension);
}

std::vector<MediaFile> list_media_files(const Attempt& attempt) {
  std::vector<MediaFile> files;
  const auto names = list_directory(attempt.folder());
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    if (auto file = parse_rank_file(name, kMediaStem, kMediaExtension))
      files.push_back({attempt.folder() / name, file->rank, std::move(file->writer)});
  }
  std::sort(files.begin(), files.end(), [](const MediaFile& a, const MediaFile& b) {
    return std::tie(a.rank, a.writer) < std::tie(b.rank, b.writer);
  });
  return files;
}

std::size_t visit_media(const Path& file, const std::function<void(MediaRecord&&)>& visit) {
  std::size_t damaged = 0;
  (void)visit_lines(file, kLongestMediaLine, [&](std::string_view line, LineKind kind) {
    if (kind == LineKind::torn || line.empty()) return true;
    auto record = kind == LineKind::whole ? parse_media(line) : std::nullopt;
    if (record) {
      visit(*std::move(record));
    } else {
      ++damaged;
    }
    return true;
  });
  return damaged;
}

}  // namespace stoker::record
