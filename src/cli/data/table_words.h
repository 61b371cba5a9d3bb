// What `stoker data pack` and `data convert` take of tables: the options --columns, --tensor, --where,
// --label,
// --key and --missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/arguments.h"
#include "data/look/tables/table_options.h"

namespace stoker::cli {

class TableWords {
 public:
  void declare(Arguments& arguments);
  /// Invalid "<command>: --tensor: ..." for words that are none.
  Result<data::TableOptions> options(std::string_view command) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::string> tensors_;
  std::string where_;
  std::string label_;
  std::string key_;
  std::string missing_;
};

}  // namespace stoker::cli
