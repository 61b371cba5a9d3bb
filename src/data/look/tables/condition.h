// What --where says of rows, as a tree: docs/formats/tables.md#conditions. Its columns are looked up by
// RowFilter. Text comes from people and scripts. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "format/parquet/columns/number.h"

namespace stoker::data {

enum class Comparison { equal, unequal, less, at_most, greater, at_least };

/// A column, or what one is compared with.
struct Term {
  struct Column {
    std::string name;
  };
  std::variant<Column, formats::Number, std::string, bool> value;
  std::size_t at = 0;  ///< its first character's number, from 1
  std::string word;    ///< as it was written
};

struct Condition {
  enum class Kind {
    all,       ///< of `parts`
    any,       ///< of `parts`
    no,        ///< part 0 does not hold
    compare,   ///< terms 0 and 1
    among,     ///< term 0 is one of the others
    like,      ///< term 0 is as the text of term 1: % stands for any characters, _ for one
    is_null,   ///< term 0
    is_nan,    ///< term 0
    holds,     ///< term 0, a column of truth values
    anything,  ///< may hold or not: stands for a part that nothing is known of
  };
  Kind kind = Kind::all;
  std::vector<Condition> parts;
  std::vector<Term> terms;
  Comparison comparison = Comparison::equal;
};

/// Reads a condition. Invalid, with the place, for any other text: "--where: character 7, 'fro': ...".
Result<Condition> parse_condition(std::string_view text);

/// An error about a word of it.
Status wrong_word(std::size_t at, std::string_view word, std::string_view what);

}  // namespace stoker::data
