#include "cli/data/table_arguments.h"

#include <limits>

#include "sources/tables/filter/predicate.h"
#include "stoker/text.h"

namespace stoker::cli {

void TableArguments::declare(Arguments& arguments) {
  arguments.option("--columns", &columns_, "NAME,...",
                   "Parquet: write only these columns as files (x_*: pattern); numbers and lists as .npy");
  arguments.option("--tensor", &tensors_, "NAME=COLUMN,...[:TYPE][[LENGTH,...]]",
                   "Parquet: store several numeric columns as one vector NAME.npy, or a list column, as in "
                   "ids=tokens:int32[512,pad=0,cut]");
  arguments.option("--where", &where_, "CONDITION",
                   "Parquet: use only matching rows: \"split = 'train' and width >= 224\"");
  arguments.option("--label", &label_, "COLUMN",
                   "Parquet: read labels from this column (integers, or class names)");
  arguments.option("--key", &key_, "COLUMN", "Parquet: name samples by this column (default: file and row)");
  arguments.option("--missing", &missing_, "drop|nan|NUMBER",
                   "Parquet: drop rows with missing values, or fill in this number (default: fail)");
}

Result<sources::TableOptions> TableArguments::options(std::string_view command) const {
  sources::TableOptions options{.where = where_, .label = label_, .key = key_};
  for (const std::string& words : columns_) {
    for (const std::string_view column : split(words, ',')) {
      if (trim(column).empty())
        return invalid("{}: --columns: '{}': empty column name", command, printable(words));
      options.columns.emplace_back(trim(column));
    }
  }
  for (const std::string& words : tensors_) {
    auto tensor = sources::parse_tensor(words);
    if (!tensor.ok()) return tensor.status().with_context(command);
    options.tensors.push_back(std::move(*tensor));
  }
  if (!where_.empty()) {
    const auto condition = sources::parse_predicate(where_);
    if (!condition.ok()) return condition.status().with_context(command);
  }
  if (missing_.empty()) return options;
  options.missing = missing_ == "drop" ? sources::MissingValues::drop : sources::MissingValues::fill;
  if (missing_ == "drop") return options;
  const auto number = missing_ == "nan" ? parquet::Number(std::numeric_limits<double>::quiet_NaN())
                                        : parquet::number_from_text(missing_);
  if (!number)
    return invalid("{}: --missing: '{}' is neither drop, nan nor a number", command, printable(missing_));
  options.fill = *number;
  return options;
}

}  // namespace stoker::cli
