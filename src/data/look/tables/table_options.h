// What of a table becomes a dataset: docs/formats/tables.md. Chosen on the command line, followed where
// Parquet files are read. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"
#include "format/parquet/columns/number.h"

namespace stoker::data {

/// Makes vectors of one length of lists of numbers.
struct TensorLength {
  std::uint64_t items = 0;
  std::optional<formats::Number> pad;  ///< stands behind shorter lists; none: they are an error
  bool cuts = false;                   ///< longer ones lose what is behind; else they are an error
};

/// Several columns of numbers, or one of lists, as one vector, `NAME.npy`.
struct TensorChoice {
  std::string name;
  std::vector<std::string> columns;    ///< names, or patterns as in "x_*"
  std::optional<DType> type;           ///< none: what NumPy makes of the columns' types together
  std::optional<TensorLength> length;  ///< of a column of lists
};

/// What becomes of a row in which a value is missing that a file, label or key is made of.
enum class MissingValues {
  refuse,  ///< an error
  drop,    ///< the row is left out
  fill,    ///< another number stands there
};

struct TableOptions {
  std::vector<std::string> columns;  ///< names or patterns of those that become files
  std::vector<TensorChoice> tensors;
  std::string where;  ///< condition() of the rows that are taken
  std::string label;  ///< column
  std::string key;    ///< column
  MissingValues missing = MissingValues::refuse;
  formats::Number fill{0.0};  ///< for MissingValues::fill

  bool is_set() const;
  /// Whether more than rows is chosen.
  bool makes_arrays() const;
  /// All that decides what comes out, as one text; empty where nothing is set.
  std::string fingerprint() const;
};

/// "features=x1,x_*", "features=x1,x_*:float32" or "ids=tokens:int32[512,pad=0,cut]". Invalid for other
/// texts.
Result<TensorChoice> parse_tensor(std::string_view text);

/// What became of lists that had another length than their tensor.
struct LengthFacts {
  std::uint64_t padded = 0;     ///< lists
  std::uint64_t cut = 0;        ///< lists
  std::uint64_t items_cut = 0;  ///< of these

  LengthFacts& operator+=(const LengthFacts& other);
};

/// What was read of tables.
struct TableFacts {
  std::uint64_t groups = 0;
  std::uint64_t groups_read = 0;        ///< the others can have no row that is chosen
  std::uint64_t pages_passed_over = 0;  ///< of these groups' columns, by the file's page index
  std::uint64_t rows = 0;
  std::uint64_t chosen = 0;             ///< by the condition
  std::uint64_t dropped = 0;            ///< of those: MissingValues::drop
  std::uint64_t files = 0;              ///< that were opened
  std::uint64_t files_passed_over = 0;  ///< of whose paths the condition says that they have no such row
  std::map<std::string, LengthFacts> lengths = {};  ///< by the tensor's name
};

}  // namespace stoker::data
