// Selects the parts of a table that become a dataset: docs/formats/tables.md. Set on the command line,
// applied when reading Parquet. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parquet/columns/number.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::sources {

/// Pads and truncates lists of numbers to one length.
struct TensorLength {
  std::uint64_t items = 0;
  std::optional<parquet::Number> pad;  ///< fills shorter lists; none: they are an error
  bool cuts = false;                   ///< truncates longer lists; else they are an error
};

/// Several columns of numbers, or one of lists, as one vector, `NAME.npy`.
struct TensorSpec {
  std::string name;
  std::vector<std::string> columns;    ///< names, or patterns such as "x_*"
  std::optional<DType> type;           ///< none: NumPy's common type of the columns
  std::optional<TensorLength> length;  ///< of a column of lists
};

/// What to do with a row if the value of a file, label or key is missing.
enum class MissingValues {
  refuse,  ///< an error
  drop,    ///< leave out the row
  fill,    ///< use a default number
};

struct TableOptions {
  std::vector<std::string> columns;  ///< names or patterns of columns that become files
  std::vector<TensorSpec> tensors;
  std::string where;  ///< condition for rows
  std::string label;  ///< column name
  std::string key;    ///< column name
  MissingValues missing = MissingValues::refuse;
  parquet::Number fill{0.0};  ///< for MissingValues::fill

  bool is_set() const;
  /// Whether columns are selected, not only rows.
  bool makes_arrays() const;
  /// All options that affect the result, as one text; empty without options.
  std::string fingerprint() const;
};

/// "features=x1,x_*", "features=x1,x_*:float32" or "ids=tokens:int32[512,pad=0,cut]". Invalid for other
/// texts.
Result<TensorSpec> parse_tensor(std::string_view text);

/// How lists were fitted to the length of their tensor.
struct LengthFacts {
  std::uint64_t padded = 0;     ///< lists
  std::uint64_t cut = 0;        ///< lists
  std::uint64_t items_cut = 0;  ///< of these

  LengthFacts& operator+=(const LengthFacts& other);
};

/// Facts about the tables that were read.
struct TableFacts {
  std::uint64_t groups = 0;
  std::uint64_t groups_read = 0;   ///< the other groups have no matching row
  std::uint64_t pages_pruned = 0;  ///< of these groups' columns, by the file's page index
  std::uint64_t rows = 0;
  std::uint64_t selected = 0;                       ///< by the condition
  std::uint64_t dropped = 0;                        ///< of the selected rows, by MissingValues::drop
  std::uint64_t files = 0;                          ///< opened files
  std::uint64_t files_pruned = 0;                   ///< not opened, because their paths cannot match
  std::map<std::string, LengthFacts> lengths = {};  ///< by the tensor's name
};

}  // namespace stoker::sources
