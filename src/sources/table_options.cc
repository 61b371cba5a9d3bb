#include "sources/table_options.h"

#include <algorithm>
#include <span>

#include "archive/streams/stream_index.h"
#include "stoker/text.h"

namespace stoker::sources {

LengthFacts& LengthFacts::operator+=(const LengthFacts& other) {
  padded += other.padded;
  cut += other.cut;
  items_cut += other.items_cut;
  return *this;
}

bool TableOptions::is_set() const { return !where.empty() || makes_arrays(); }

bool TableOptions::makes_arrays() const {
  return !columns.empty() || !tensors.empty() || !label.empty() || !key.empty() ||
         missing != MissingValues::refuse;
}

std::string TableOptions::fingerprint() const {
  if (!is_set()) return {};
  std::string text;
  const auto add = [&](std::string_view part) { text += format("{}:{};", part.size(), part); };
  for (const std::string& column : columns) add(column);
  add("tensors");
  for (const TensorSpec& tensor : tensors) {
    add(tensor.name);
    for (const std::string& column : tensor.columns) add(column);
    add(tensor.type ? parquet::numpy_name(*tensor.type) : "");
    if (!tensor.length) continue;
    add(format("[{},{},{}]", tensor.length->items, tensor.length->cuts ? "cut" : "",
               tensor.length->pad ? to_text(*tensor.length->pad) : ""));
  }
  add(where);
  add(label);
  add(key);
  add(missing == MissingValues::fill ? to_text(fill) : missing == MissingValues::drop ? "drop" : "");
  return text;
}

namespace {

// "512", "512,pad=0", "512,cut,pad=-1" after a tensor's columns. Sets `why` on error.
std::optional<TensorLength> length_in(std::string_view text, std::string& why) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 28;
  constexpr std::string_view kPad = "pad=";
  TensorLength length;
  const std::vector<std::string_view> words = split(text, ',');
  if (!parse_number(trim(words[0]), &length.items) || length.items == 0 || length.items > kMax) {
    why = format("'{}' is not a length", printable(trim(words[0])));
    return std::nullopt;
  }
  for (const std::string_view word : std::span(words).subspan(1)) {
    const std::string_view option = trim(word);
    if (option == "cut" && !length.cuts) {
      length.cuts = true;
    } else if (option.starts_with(kPad) && !length.pad) {
      length.pad = parquet::number_from_text(option.substr(kPad.size()));
      if (!length.pad) why = format("'{}' is not a number to pad with", printable(option));
    } else {
      why = format("'{}' is neither pad=NUMBER nor cut", printable(option));
    }
    if (!why.empty()) return std::nullopt;
  }
  return length;
}

}  // namespace

Result<TensorSpec> parse_tensor(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return invalid("--tensor: '{}': {} (as in features=x1,x2:float32 or ids=tokens:int32[512,pad=0,cut])",
                   printable(text), why);
  };
  const std::size_t equals = text.find('=');
  TensorSpec tensor{.name = std::string(trim(text.substr(0, equals))), .columns = {}};
  const bool is_name = !tensor.name.empty() && tensor.name.find_first_not_of(
                                                   "abcdefghijklmnopqrstuvwxyz"
                                                   "0123456789_-") == std::string::npos;
  if (equals == std::string_view::npos) return wrong("has no '='");
  if (!is_name) return wrong("its name may only have lowercase letters, digits, _ and -");
  std::string_view columns = trim(text.substr(equals + 1));
  if (const std::size_t bracket = columns.rfind('['); columns.ends_with(']') && bracket != columns.npos) {
    std::string why;
    tensor.length = length_in(columns.substr(bracket + 1, columns.size() - bracket - 2), why);
    if (!tensor.length) return wrong(why);
    columns = columns.substr(0, bracket);
  }
  if (const std::size_t colon = columns.rfind(':'); colon != std::string_view::npos) {
    const std::string_view type = trim(columns.substr(colon + 1));
    tensor.type = archive::numpy_type(type);
    if (!tensor.type) return wrong(format("'{}' is not a NumPy number type", printable(type)));
    columns = columns.substr(0, colon);
  }
  for (const std::string_view column : split(columns, ',')) {
    if (trim(column).empty()) return wrong("empty column name");
    tensor.columns.emplace_back(trim(column));
  }
  return tensor;
}

}  // namespace stoker::sources
