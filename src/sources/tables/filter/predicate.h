// Syntax tree of --where: docs/formats/tables.md#conditions. RowFilter resolves its columns. Input from users
// and scripts. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "parquet/columns/number.h"
#include "stoker/status.h"

namespace stoker::sources {

enum class Comparison { equal, unequal, less, at_most, greater, at_least };

/// A column or a literal.
struct Term {
  struct Column {
    std::string name;
  };
  std::variant<Column, parquet::Number, std::string, bool> value;
  std::size_t at = 0;  ///< position of its first character, from 1
  std::string word;    ///< source text
};

struct Predicate {
  enum class Kind {
    all,       ///< and, of `parts`
    any,       ///< or, of `parts`
    negation,  ///< not, of part 0
    compare,   ///< of terms 0 and 1
    in_list,   ///< term 0 is one of the other terms
    like,      ///< term 0 matches the pattern of term 1: % any characters, _ one character
    is_null,   ///< term 0
    is_nan,    ///< term 0
    is_true,   ///< term 0, a boolean column
    unknown,   ///< may be true or false: a part about unknown columns
  };
  Kind kind = Kind::all;
  std::vector<Predicate> parts;
  std::vector<Term> terms;
  Comparison comparison = Comparison::equal;
};

/// Parses a condition. Invalid, with the position, for any other text: "--where: character 7, 'fro': ...".
Result<Predicate> parse_predicate(std::string_view text);

/// The option that selects rows with a value in the column, for a shell: `--where 'text is not null'`.
std::string where_present(std::string_view column);

/// An error about a token.
Status token_error(std::size_t at, std::string_view word, std::string_view what);

}  // namespace stoker::sources
