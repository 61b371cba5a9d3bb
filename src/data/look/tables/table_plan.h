// What becomes of each column of a table: files, arrays, label, key. Used where Parquet files are unpacked.
// Plain values. Rules: docs/formats/tables.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"
#include "data/look/tables/table_options.h"
#include "format/parquet/leaf.h"

namespace stoker::data {

struct TablePlan {
  /// A .npy file of each sample.
  struct Array {
    std::string extension;
    DType type = DType::f32;
    std::vector<std::size_t> leaves;     ///< one, or those of a vector
    bool is_vector = false;              ///< of one number of each leaf; else the leaf's own number or list
    std::vector<std::byte> fill;         ///< an element, in place of a missing one; empty: there is none
    std::optional<TensorLength> length;  ///< of lists: all have this one
    std::vector<std::byte> pad;          ///< an element; empty: there is none
  };
  std::vector<Array> arrays;
  std::vector<std::size_t> files;  ///< leaves of bytes, each a file
  /// A leaf of lists: a JSON file of texts, or a file for each item, `extension` and its number.
  struct Items {
    std::size_t leaf = 0;
    std::string extension;
    bool is_json = false;
  };
  std::vector<Items> items;
  std::optional<std::size_t> label;
  std::optional<std::size_t> key;
  bool is_own = false;                 ///< the key is `__key__`, and files are called as their columns
  std::vector<std::string> not_taken;  ///< names of the other leaves

  /// The numbers of all leaves that have to be read, ascending.
  std::vector<std::size_t> leaves() const;
};

/// Leaves from `first_of_path` on are what the file's path says. Invalid for columns that are not there, that
/// make no file, or several of one name.
Result<TablePlan> plan_table(std::span<const formats::ParquetLeaf> leaves, std::size_t first_of_path,
                             const TableOptions& options);

}  // namespace stoker::data
