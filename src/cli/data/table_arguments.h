// Table options of `stoker data pack` and `data convert`: --columns, --tensor, --where,
// --label,
// --key and --missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "sources/table_options.h"
#include "stoker/status.h"

namespace stoker::cli {

class TableArguments {
 public:
  void declare(Arguments& arguments);
  /// Invalid "<command>: --tensor: ..." for malformed values.
  Result<sources::TableOptions> options(std::string_view command) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::string> tensors_;
  std::string where_;
  std::string label_;
  std::string key_;
  std::string missing_;
};

}  // namespace stoker::cli
