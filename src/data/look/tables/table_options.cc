#include "data/look/tables/table_options.h"

#include <algorithm>

#include "base/text.h"
#include "format/streams/stream_index.h"

namespace stoker::data {

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
  for (const TensorChoice& tensor : tensors) {
    add(tensor.name);
    for (const std::string& column : tensor.columns) add(column);
    add(tensor.type ? formats::numpy_name(*tensor.type) : "");
  }
  add(where);
  add(label);
  add(key);
  add(missing == MissingValues::fill ? to_text(fill) : missing == MissingValues::drop ? "drop" : "");
  return text;
}

Result<TensorChoice> parse_tensor(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return invalid("--tensor: '{}': {} (as in features=x1,x2:float32)", printable(text), why);
  };
  const std::size_t equals = text.find('=');
  TensorChoice tensor{.name = std::string(trim(text.substr(0, equals))), .columns = {}};
  const bool is_name = !tensor.name.empty() && tensor.name.find_first_not_of(
                                                   "abcdefghijklmnopqrstuvwxyz"
                                                   "0123456789_-") == std::string::npos;
  if (equals == std::string_view::npos) return wrong("has no '='");
  if (!is_name) return wrong("its name is not of small letters, digits, _ and -");
  std::string_view columns = text.substr(equals + 1);
  if (const std::size_t colon = columns.rfind(':'); colon != std::string_view::npos) {
    const std::string_view type = trim(columns.substr(colon + 1));
    tensor.type = formats::numpy_type(type);
    if (!tensor.type) return wrong(format("'{}' is no type of NumPy's numbers", printable(type)));
    columns = columns.substr(0, colon);
  }
  for (const std::string_view column : split(columns, ',')) {
    if (trim(column).empty()) return wrong("a column has no name");
    tensor.columns.emplace_back(trim(column));
  }
  return tensor;
}

}  // namespace stoker::data
