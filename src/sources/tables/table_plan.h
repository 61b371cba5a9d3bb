// Plans how each column of a table is used: files, arrays, label, key. Used to unpack Parquet. Plain values.
// Rules: docs/formats/tables.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parquet/schema/leaf.h"
#include "sources/table_options.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::sources {

struct TablePlan {
  /// A .npy file of each sample.
  struct Array {
    std::string extension;
    DType type = DType::f32;
    std::vector<std::size_t> leaves;  ///< one, or all leaves of a vector
    bool is_vector = false;           ///< one number from each leaf; else the number or list of the only leaf
    std::vector<std::byte> fill;      ///< default element for a missing one; empty: none
    std::optional<TensorLength> length;  ///< common length of lists
    std::vector<std::byte> pad;          ///< an element; empty: none
  };
  std::vector<Array> arrays;
  std::vector<std::size_t> files;  ///< leaves of bytes, each a file
  /// A leaf of lists: a JSON file of texts, or one file per item, `extension` with its number.
  struct Items {
    std::size_t leaf = 0;
    std::string extension;
    bool is_json = false;
  };
  std::vector<Items> items;
  std::optional<std::size_t> label;
  std::optional<std::size_t> key;
  bool is_own = false;                      ///< the key is `__key__`, and files are named after their columns
  std::vector<std::string> skipped_fields;  ///< names of unused leaves

  /// All leaves to read, ascending.
  std::vector<std::size_t> leaves() const;
};

/// Leaves from `first_partition` on are partition keys. Invalid for columns that are missing, cannot become a
/// file, or have the same name.
Result<TablePlan> plan_table(std::span<const parquet::ParquetLeaf> leaves, std::size_t first_partition,
                             const TableOptions& options);

}  // namespace stoker::sources
