#include "cli/data/table_words.h"

#include <limits>

#include "base/text.h"
#include "data/look/tables/condition.h"

namespace stoker::cli {

void TableWords::declare(Arguments& arguments) {
  arguments.option(
      "--columns", &columns_, "NAME,...",
      "of Parquet: only these columns become files (x_*: all called so); numbers and lists .npy");
  arguments.option(
      "--tensor", &tensors_, "NAME=COLUMN,...[:TYPE][[LENGTH,...]]",
      "of Parquet: numbers of several columns as one vector, NAME.npy; or lists of one column, as in "
      "ids=tokens:int32[512,pad=0,cut]");
  arguments.option("--where", &where_, "CONDITION",
                   "of Parquet: only rows for which it is true: \"split = 'train' and width >= 224\"");
  arguments.option("--label", &label_, "COLUMN", "of Parquet: whole numbers, or texts, which become classes");
  arguments.option("--key", &key_, "COLUMN", "of Parquet: names the samples (default: file and row)");
  arguments.option("--missing", &missing_, "drop|nan|NUMBER",
                   "of Parquet: rows without a value are left out, or get this number (default: an error)");
}

Result<data::TableOptions> TableWords::options(std::string_view command) const {
  data::TableOptions options{.where = where_, .label = label_, .key = key_};
  for (const std::string& words : columns_) {
    for (const std::string_view column : split(words, ',')) {
      if (trim(column).empty())
        return invalid("{}: --columns: '{}': a column has no name", command, printable(words));
      options.columns.emplace_back(trim(column));
    }
  }
  for (const std::string& words : tensors_) {
    auto tensor = data::parse_tensor(words);
    if (!tensor.ok()) return tensor.status().with_context(command);
    options.tensors.push_back(std::move(*tensor));
  }
  if (!where_.empty()) {
    const auto condition = data::parse_condition(where_);
    if (!condition.ok()) return condition.status().with_context(command);
  }
  if (missing_.empty()) return options;
  options.missing = missing_ == "drop" ? data::MissingValues::drop : data::MissingValues::fill;
  if (missing_ == "drop") return options;
  const auto number = missing_ == "nan" ? formats::Number(std::numeric_limits<double>::quiet_NaN())
                                        : formats::number_of(missing_);
  if (!number)
    return invalid("{}: --missing: '{}' is neither drop, nan nor a number", command, printable(missing_));
  options.fill = *number;
  return options;
}

}  // namespace stoker::cli
