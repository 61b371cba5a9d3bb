#include "inspect/sheet/render_array.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/encode.h"
#include "codec/npy.h"
#include "image/encode.h"
#include "inspect/sheet/numbers.h"
#include "inspect/sheet/thumbnail.h"
#include "parquet/columns/number.h"
#include "stoker/text.h"

namespace stoker::inspect {

const std::string_view kArrayStyle =
    ".numbers{width:144px;height:auto;display:block;margin-top:4px;background:#f2f2f2;color:#2563a8}"
    "figure div.text{display:block;height:auto;box-sizing:border-box;padding:4px 6px;color:#222;"
    "font:11px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}figure div.value{font-size:15px}"
    "img.numbers{image-rendering:pixelated;background:none}"
    "p.array{font-size:11px;margin:2px 0 6px;overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){.numbers{background:#222;color:#7ab8f5}figure div.text{color:#ddd}}";

namespace {

constexpr std::size_t kMaxBars = 48;
constexpr std::size_t kShownItems = 40;  // of a list of integers
constexpr int kPlotHeight = 72;

std::string format_shape(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string caption_of(const codec::NpyInfo& info, const ValueRange& range, bool has_range) {
  std::string text = format("{} {}", parquet::numpy_name(info.element), format_shape(info.shape));
  if (has_range && range.finite > 0) text += format(", {:.4g} to {:.4g}", range.least, range.most);
  if (range.nan > 0) text += format(", {} NaN", grouped(range.nan));
  if (range.infinite > 0) text += format(", {} infinite", grouped(range.infinite));
  return text;
}

std::string text_box(std::string_view text, std::string_view kind = "") {
  return format("<div class=\"numbers text{}{}\">{}</div>", kind.empty() ? "" : " ", kind, escape_html(text));
}

// "101, 7592, 102, 0 × 509": a repeated last item (padding) is shown with its count.
std::string format_list(const Numbers& numbers) {
  constexpr std::size_t kRun = 4;
  const std::size_t width = size_of(numbers.type);
  const auto item = [&](std::size_t i) { return numbers.bytes.subspan(i * width, width); };
  const std::size_t end = numbers.size() - 1;
  std::size_t run = 1;
  while (run <= end && std::ranges::equal(item(end - run), item(end))) ++run;
  const std::size_t before = run >= kRun ? numbers.size() - run : numbers.size();
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(before, kShownItems); ++i) words.push_back(numbers.text(i));
  if (before > kShownItems) words.push_back(format("… {} more", grouped(before - kShownItems)));
  if (run >= kRun) words.push_back(format("{} × {}", numbers.text(end), grouped(run)));
  return join(words, ", ");
}

double height_of(double value, const ValueRange& range) {
  return (1 - range.normalize(value)) * (kPlotHeight - 4) + 2;
}

std::string svg(std::string_view what, std::string_view content) {
  return format("<svg class=\"numbers\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
                kArraySide, kPlotHeight, what, content);
}

// The zero line, if zero is in the range.
std::string zero_line(const ValueRange& range) {
  if (range.least >= 0 || range.most <= 0) return {};
  const double y = height_of(0, range);
  return format("<path d=\"M0 {:.1f}H{}\" stroke=\"currentColor\" opacity=\".3\"/>", y, kArraySide);
}

std::string bars(const Numbers& numbers, ValueRange range) {
  range.least = std::min(range.least, 0.0);
  range.most = std::max(range.most, 0.0);
  const double width = static_cast<double>(kArraySide) / static_cast<double>(numbers.size());
  const double zero = height_of(0, range);
  std::string path;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(numbers[i])) continue;
    path += format("M{:.1f} {:.1f}h{:.1f}V{:.1f}h-{:.1f}z", width * static_cast<double>(i), zero, width * 0.8,
                   height_of(numbers[i], range), width * 0.8);
  }
  return svg("bars", format("<path d=\"{}\" fill=\"currentColor\" stroke=\"currentColor\" "
                            "stroke-width=\".5\"/>{}",
                            path, zero_line(range)));
}

// For each pixel column a line from the minimum to the maximum of its values; a gap if none is finite.
std::string line(const Numbers& numbers, const ValueRange& range) {
  const std::size_t places = std::min<std::size_t>(numbers.size(), kArraySide);
  std::string path;
  bool continues = false;
  for (std::size_t place = 0; place < places; ++place) {
    std::optional<double> least;
    std::optional<double> most;
    for (std::size_t i = place * numbers.size() / places; i < (place + 1) * numbers.size() / places; ++i) {
      const double value = numbers[i];
      if (!std::isfinite(value)) continue;
      least = std::min(least.value_or(value), value);
      most = std::max(most.value_or(value), value);
    }
    if (least) {
      const double x = (static_cast<double>(place) + 0.5) * kArraySide / static_cast<double>(places);
      path += format("{}{:.1f} {:.1f}V{:.1f}", continues ? "L" : "M", x, height_of(*least, range),
                     height_of(*most, range));
    }
    continues = least.has_value();
  }
  return svg("line",
             format("<path d=\"{}\" fill=\"none\" stroke=\"currentColor\"/>{}", path, zero_line(range)));
}

// From dark blue over green to yellow by lightness; grey for NaN.
std::array<std::uint8_t, 3> colour(double share) {
  constexpr std::array<std::array<double, 3>, 4> kStops = {
      {{38, 25, 84}, {36, 104, 142}, {60, 176, 116}, {250, 230, 80}}};
  if (std::isnan(share)) return {136, 136, 136};
  const double at = share * (kStops.size() - 1);
  const std::size_t first = std::min<std::size_t>(static_cast<std::size_t>(at), kStops.size() - 2);
  const double part = at - static_cast<double>(first);
  std::array<std::uint8_t, 3> mixed{};
  for (std::size_t i = 0; i < mixed.size(); ++i)
    mixed[i] = static_cast<std::uint8_t>(
        std::lround(kStops[first][i] + (kStops[first + 1][i] - kStops[first][i]) * part));
  return mixed;
}

struct NumberTable {
  Numbers numbers;
  std::size_t rows = 0;
  std::size_t columns = 0;
};

// The normalized mean of a part of the table; NaN if all values are NaN. Infinite values count as the ends.
double mean_share(const NumberTable& table, const ValueRange& range, std::array<std::size_t, 4> part) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t row = part[0]; row < part[1]; ++row) {
    for (std::size_t column = part[2]; column < part[3]; ++column) {
      const double value = table.numbers[row * table.columns + column];
      if (std::isnan(value)) continue;
      sum += std::isinf(value) ? (value > 0 ? 1 : 0) : range.normalize(value);
      ++count;
    }
  }
  return count == 0 ? std::nan("") : sum / static_cast<double>(count);
}

// Tables larger than the picture are averaged down; the browser enlarges smaller ones.
Result<std::string> heat_map(const NumberTable& table, const ValueRange& range) {
  const std::size_t height = std::min<std::size_t>(table.rows, kArraySide);
  const std::size_t width = std::min<std::size_t>(table.columns, kArraySide);
  std::vector<std::byte> pixels;
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const double share = mean_share(table, range,
                                      {y * table.rows / height, (y + 1) * table.rows / height,
                                       x * table.columns / width, (x + 1) * table.columns / width});
      for (const std::uint8_t channel : colour(share)) pixels.push_back(std::byte{channel});
    }
  }
  STOKER_ASSIGN_OR_RETURN(png, image::encode_png(static_cast<std::uint32_t>(width),
                                                 static_cast<std::uint32_t>(height), 3, pixels));
  constexpr std::size_t kThinnest = 12;
  const std::size_t longer = std::max(table.rows, table.columns);
  const auto side = [&](std::size_t of) { return std::max(kThinnest, of * kArraySide / longer); };
  return format(
      "<img class=\"numbers\" style=\"width:{}px;height:{}px\" alt=\"map of colours\" "
      "src=\"data:image/png;base64,{}\">",
      side(table.columns), side(table.rows), base64(png));
}

// Pixels in C order: height, width, channels; or channels first.
struct Pixels {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  bool are_planes = false;
};

std::optional<Pixels> pixels_in(const codec::NpyInfo& info) {
  constexpr std::int64_t kWidest = 65'535;
  if (info.element != DType::u8 || info.shape.size() != 3) return std::nullopt;
  const auto of = [&](std::size_t height, std::size_t channels, bool are_planes) -> std::optional<Pixels> {
    const std::int64_t count = info.shape[channels];
    const std::int64_t rows = info.shape[height];
    const std::int64_t columns = info.shape[height + 1];
    const bool is_image =
        (count == 3 || count == 1) && rows > 1 && columns > 1 && rows <= kWidest && columns <= kWidest;
    if (!is_image) return std::nullopt;
    return Pixels{static_cast<std::uint32_t>(columns), static_cast<std::uint32_t>(rows),
                  static_cast<std::uint32_t>(count), are_planes};
  };
  const auto last = of(0, 2, false);
  return last ? last : of(1, 0, true);
}

Result<std::string> image(const Pixels& pixels, std::span<const std::byte> data) {
  const std::size_t area = std::size_t{pixels.width} * pixels.height;
  std::vector<std::uint8_t> rgb(3 * area);
  for (std::size_t i = 0; i < area; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      const std::size_t channel = pixels.channels == 1 ? 0 : c;
      const std::size_t at = pixels.are_planes ? channel * area + i : i * pixels.channels + channel;
      rgb[3 * i + c] = std::to_integer<std::uint8_t>(data[at]);
    }
  }
  STOKER_ASSIGN_OR_RETURN(small, encode_thumbnail({pixels.width, pixels.height, rgb}, kArraySide));
  return format("<img class=\"numbers\" alt=\"pixels\" src=\"data:image/jpeg;base64,{}\">",
                base64(std::as_bytes(std::span(small.jpeg))));
}

Shape squeeze(const Shape& shape) {
  Shape kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept),
               [](std::int64_t size) { return size != 1; });
  return kept;
}

std::string render_vector(const Numbers& numbers, const ValueRange& range) {
  if (is_whole(numbers.type)) return text_box(format_list(numbers));
  if (range.finite == 0) return text_box("no finite number");
  return numbers.size() <= kMaxBars ? bars(numbers, range) : line(numbers, range);
}

}  // namespace

Result<ArrayPicture> render_array(std::span<const std::byte> npy) {
  STOKER_ASSIGN_OR_RETURN(info, codec::read_npy(npy));
  const Shape shape = squeeze(info.shape);
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  Numbers numbers{info.element, npy.subspan(info.data_offset, count * size_of(info.element))};
  ArrayPicture picture;
  if (count == 0 || count == 1) {
    picture.html = count == 0 ? text_box("empty") : text_box(numbers.text(0), "value");
    picture.caption = caption_of(info, {}, false);
    return picture;
  }
  if (const auto pixels = pixels_in(info)) {
    STOKER_ASSIGN_OR_RETURN(html, image(*pixels, numbers.bytes));
    picture.html = std::move(html);
    picture.caption = caption_of(info, {}, false);
    return picture;
  }
  const bool is_table = shape.size() > 1;
  const std::size_t rows = is_table ? static_cast<std::size_t>(shape[shape.size() - 2]) : 1;
  const auto columns = static_cast<std::size_t>(shape.back());
  numbers.bytes = numbers.bytes.first(rows * columns * size_of(numbers.type));
  const ValueRange range = value_range_of(numbers);
  picture.caption = caption_of(info, range, true);
  if (shape.size() > 2) picture.caption += format(", the first {} x {}", rows, columns);
  if (!is_table) {
    picture.html = render_vector(numbers, range);
    return picture;
  }
  STOKER_ASSIGN_OR_RETURN(map, heat_map({numbers, rows, columns}, range));
  picture.html = std::move(map);
  return picture;
}

}  // namespace stoker::inspect
