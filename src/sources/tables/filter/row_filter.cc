#include "sources/tables/filter/row_filter.h"

#include <algorithm>
#include <string_view>

#include "sources/tables/filter/leaf_kind.h"
#include "sources/tables/filter/pattern.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

using parquet::ParquetLeaf;
using parquet::ParquetRange;
using parquet::ParquetValues;
using Kind = Predicate::Kind;
using Test = RowFilter::Test;

// Possible results of a test, as a set.
using Outcomes = unsigned;
constexpr Outcomes kFalse = 1;
constexpr Outcomes kTrue = 2;
constexpr Outcomes kUnknown = 4;

bool fits(std::partial_ordering order, Comparison comparison) {
  switch (comparison) {
    case Comparison::equal:
      return std::is_eq(order);
    case Comparison::unequal:
      return !std::is_eq(order);
    case Comparison::less:
      return std::is_lt(order);
    case Comparison::at_most:
      return std::is_lteq(order);
    case Comparison::greater:
      return std::is_gt(order);
    case Comparison::at_least:
      return std::is_gteq(order);
  }
  return false;
}

Outcomes negated(Outcomes of) {
  return ((of & kFalse) != 0 ? kTrue : 0) | ((of & kTrue) != 0 ? kFalse : 0) | (of & kUnknown);
}

// Conjunction. Works on sets, so that single outcomes are a special case.
Outcomes both(Outcomes a, Outcomes b) {
  Outcomes of = (a | b) & kFalse;
  if ((a & kTrue) != 0 && (b & kTrue) != 0) of |= kTrue;
  if (((a & kUnknown) != 0 && (b & ~kFalse) != 0) || ((b & kUnknown) != 0 && (a & ~kFalse) != 0))
    of |= kUnknown;
  return of;
}

template <typename Part>
Outcomes combined(const Test& test, const Part& part) {
  const bool is_any = test.kind == Kind::any;
  Outcomes of = kTrue;
  for (const Test& one : test.parts) {
    const Outcomes found = part(one);
    of = both(of, is_any || test.kind == Kind::negation ? negated(found) : found);
    if (of == kFalse) break;  // regardless of the remaining parts
  }
  return is_any ? negated(of) : of;
}

// Evaluates one row.
class RowEvaluator {
 public:
  RowEvaluator(std::span<const ParquetLeaf> leaves, std::span<const ParquetValues> values, std::uint64_t row)
      : leaves_(leaves), values_(values), row_(row) {}

  Outcomes evaluate(const Test& test) const {
    switch (test.kind) {
      case Kind::all:
      case Kind::any:
      case Kind::negation:
        return combined(test, [this](const Test& part) { return evaluate(part); });
      case Kind::is_null:
        return is_there(test.column) ? kFalse : kTrue;
      case Kind::unknown:
        return kTrue | kFalse | kUnknown;
      default:
        break;
    }
    if (!is_there(test.column) || (test.other && !is_there(*test.other))) return kUnknown;
    return is_true(test) ? kTrue : kFalse;
  }

 private:
  bool is_there(std::size_t column) const { return values_[column].is_row_present(row_); }
  parquet::Number number(std::size_t column) const {
    return number_at(values_[column], leaves_[column], row_);
  }
  std::string_view text(std::size_t column) const { return values_[column].texts[row_]; }
  bool has_text(std::size_t column) const { return leaves_[column].type == ParquetLeaf::Type::bytes; }

  bool is_true(const Test& test) const {
    if (test.kind == Kind::is_nan) return number(test.column).is_nan();
    if (test.kind == Kind::like) return matches(text(test.column), test.texts[0], {'%', '_'});
    if (has_text(test.column)) {
      const std::string_view own = text(test.column);
      if (test.other) return fits(own <=> text(*test.other), test.comparison);
      return std::any_of(test.texts.begin(), test.texts.end(),
                         [&](std::string_view one) { return fits(own <=> one, test.comparison); });
    }
    const parquet::Number own = number(test.column);
    if (test.other) return fits(own <=> number(*test.other), test.comparison);
    return std::any_of(test.numbers.begin(), test.numbers.end(),
                       [&](const parquet::Number& one) { return fits(own <=> one, test.comparison); });
  }

  std::span<const ParquetLeaf> leaves_;
  std::span<const ParquetValues> values_;
  std::uint64_t row_;
};

// Evaluates a row group by its statistics.
class GroupEvaluator {
 public:
  GroupEvaluator(std::span<const ParquetLeaf> leaves, std::span<const ParquetRange> ranges,
                 std::uint64_t rows)
      : leaves_(leaves), ranges_(ranges), rows_(rows) {}

  Outcomes evaluate(const Test& test) const {
    switch (test.kind) {
      case Kind::all:
      case Kind::any:
      case Kind::negation:
        return combined(test, [this](const Test& part) { return evaluate(part); });
      case Kind::is_null:
        return (none_missing(test.column) ? 0 : kTrue) | (all_missing(test.column) ? 0 : kFalse);
      case Kind::unknown:
        return kTrue | kFalse | kUnknown;
      default:
        break;
    }
    if (all_missing(test.column)) return kUnknown;
    Outcomes of = none_missing(test.column) && !test.other ? 0 : kUnknown;
    if (test.kind == Kind::is_nan || test.kind == Kind::like || test.other) return of | kTrue | kFalse;
    const auto type = number_type(leaves_[test.column]);
    // Statistics do not include NaN.
    if (type && parquet::is_floating(*type)) of |= test.comparison == Comparison::unequal ? kTrue : kFalse;
    return type ? of | compared(test.numbers, test.comparison, numbers(ranges_[test.column], *type))
                : of | compared(test.texts, test.comparison, texts(ranges_[test.column]));
  }

 private:
  template <typename Value>
  struct Ends {
    std::optional<Value> least;
    std::optional<Value> most;
  };

  bool none_missing(std::size_t column) const { return ranges_[column].null_count == 0; }
  bool all_missing(std::size_t column) const { return ranges_[column].null_count == rows_; }

  static Ends<parquet::Number> numbers(const ParquetRange& range, DType type) {
    const auto of = [type](const std::optional<std::string>& end) -> std::optional<parquet::Number> {
      if (!end || end->size() != size_of(type)) return std::nullopt;
      const parquet::Number found =
          parquet::load_number(type, reinterpret_cast<const std::byte*>(end->data()));
      return found.is_nan() ? std::nullopt : std::optional(found);
    };
    return {of(range.min), of(range.max)};
  }
  static Ends<std::string> texts(const ParquetRange& range) { return {range.min, range.max}; }

  // Whether a value in the range may satisfy the comparison with one of these, and whether one may not.
  template <typename Value>
  static Outcomes compared(const std::vector<Value>& with, Comparison comparison, const Ends<Value>& ends) {
    Outcomes of = with.size() > 1 ? kFalse : 0;
    for (const Value& value : with) {
      const bool may_be_less = !ends.least || *ends.least < value;
      const bool may_be_more = !ends.most || *ends.most > value;
      const bool may_be_equal = (!ends.least || *ends.least <= value) && (!ends.most || *ends.most >= value);
      if (may_be_less) of |= fits(std::partial_ordering::less, comparison) ? kTrue : kFalse;
      if (may_be_more) of |= fits(std::partial_ordering::greater, comparison) ? kTrue : kFalse;
      if (may_be_equal) of |= fits(std::partial_ordering::equivalent, comparison) ? kTrue : kFalse;
    }
    return of;
  }

  std::span<const ParquetLeaf> leaves_;
  std::span<const ParquetRange> ranges_;
  std::uint64_t rows_;
};

// Resolves columns and converts literals to their types.
class Binder {
 public:
  explicit Binder(std::span<const ParquetLeaf> leaves) : leaves_(leaves) {}

  std::vector<std::size_t> take_used_leaves() { return std::move(used_); }

  Result<Test> test(const Predicate& condition) {
    Test test{.kind = condition.kind, .comparison = condition.comparison};
    for (const Predicate& part : condition.parts) {
      STOKER_ASSIGN_OR_RETURN(bound, this->test(part));
      test.parts.push_back(std::move(bound));
    }
    if (condition.terms.empty()) return test;
    const Term& first = condition.terms[0];
    STOKER_ASSIGN_OR_RETURN(column, column_of(first));
    test.column = column;
    if (condition.kind == Kind::is_null) return test;
    STOKER_RETURN_IF_ERROR(check_comparable(first, leaf(column), condition));
    if (condition.kind == Kind::is_true) {
      test.kind = Kind::compare;
      test.numbers.emplace_back(std::int64_t{1});
    }
    for (std::size_t i = 1; i < condition.terms.size(); ++i) {
      const Term& term = condition.terms[i];
      if (std::holds_alternative<Term::Column>(term.value)) {
        STOKER_RETURN_IF_ERROR(bind_other(first, term, test));
      } else {
        STOKER_RETURN_IF_ERROR(bind_literal(first, term, test));
      }
    }
    return test;
  }

 private:
  const ParquetLeaf& leaf(std::size_t column) const { return leaves_[used_[column]]; }

  Result<std::size_t> column_of(const Term& term) {
    const std::string& name = std::get<Term::Column>(term.value).name;
    const auto found = std::find_if(leaves_.begin(), leaves_.end(),
                                    [&](const ParquetLeaf& leaf) { return leaf.name == name; });
    if (found == leaves_.end()) {
      std::vector<std::string_view> names;
      for (const ParquetLeaf& leaf : leaves_) names.push_back(leaf.name);
      const std::string_view hint = term.word.starts_with('"') ? " (text needs single quotes)" : "";
      return token_error(term.at, term.word, format("no such column{}{}", suggestion(name, names), hint));
    }
    const auto number = static_cast<std::size_t>(found - leaves_.begin());
    const auto used = std::find(used_.begin(), used_.end(), number);
    if (used != used_.end()) return static_cast<std::size_t>(used - used_.begin());
    used_.push_back(number);
    return used_.size() - 1;
  }

  static Status check_comparable(const Term& term, const ParquetLeaf& leaf, const Predicate& condition) {
    const auto type = number_type(leaf);
    const bool is_readable = leaf.lists == 0 && (type || is_text(leaf));
    if (!is_readable)
      return token_error(term.at, term.word,
                         format("is of type {}, which supports only 'is null'", type_name(leaf)));
    if (condition.kind == Kind::is_nan && (!type || !parquet::is_floating(*type)))
      return token_error(term.at, term.word, format("is of type {}, which is never NaN", type_name(leaf)));
    if (condition.kind == Kind::like && type)
      return token_error(term.at, term.word, format("is of type {}, but 'like' needs text", type_name(leaf)));
    if (condition.kind == Kind::is_true && type != DType::boolean)
      return token_error(term.at, term.word,
                         format("is of type {}: a comparison is expected after it", type_name(leaf)));
    return {};
  }

  Status bind_other(const Term& first, const Term& term, Test& test) {
    STOKER_ASSIGN_OR_RETURN(other, column_of(term));
    const ParquetLeaf& one = leaf(test.column);
    const ParquetLeaf& two = leaf(other);
    STOKER_RETURN_IF_ERROR(check_comparable(term, two, Predicate{.parts = {}, .terms = {}}));
    const bool is_same_kind = is_text(one) == is_text(two) && units_per_day(one) == units_per_day(two) &&
                              (number_type(one) == DType::boolean) == (number_type(two) == DType::boolean);
    if (!is_same_kind)
      return token_error(term.at, term.word,
                         format("is of type {}, but {} is {}", type_name(two), first.word, type_name(one)));
    test.other = other;
    return {};
  }

  Status bind_literal(const Term& first, const Term& term, Test& test) const {
    const ParquetLeaf& leaf = this->leaf(test.column);
    const auto type = number_type(leaf);
    const auto* const text = std::get_if<std::string>(&term.value);
    const auto* const truth = std::get_if<bool>(&term.value);
    const auto* const number = std::get_if<parquet::Number>(&term.value);
    if (text && !type) {
      test.texts.push_back(*text);
    } else if (truth && type == DType::boolean) {
      test.numbers.emplace_back(std::int64_t{*truth ? 1 : 0});
    } else if (number && type && type != DType::boolean) {
      test.numbers.push_back(as_stored(*number, *type));
    } else if (const auto units = units_per_day(leaf); text && units) {
      const auto timestamp = parse_timestamp(*text, *units);
      if (!timestamp)
        return token_error(term.at, term.word,
                           format("{} is of type {}: write it as in '2026-11-23' or '2026-11-23 14:05:00'",
                                  first.word, type_name(leaf)));
      test.numbers.push_back(*timestamp);
    } else {
      const std::string_view expected = type == DType::boolean ? "true or false"
                                        : type                 ? "a number"
                                                               : "a text in single quotes";
      return token_error(term.at, term.word,
                         format("{} is of type {}: {} is expected", first.word, type_name(leaf), expected));
    }
    return {};
  }

  // A fraction in the precision of the column: 0.1 as float32.
  static parquet::Number as_stored(const parquet::Number& number, DType type) {
    if (!number.is_real() || !parquet::is_floating(type)) return number;
    std::byte bytes[sizeof(double)];
    return parquet::store_number(number, type, bytes).empty() ? parquet::load_number(type, bytes) : number;
  }

  std::span<const ParquetLeaf> leaves_;
  std::vector<std::size_t> used_;
};

}  // namespace

Result<RowFilter> RowFilter::create(const Predicate& condition, std::span<const ParquetLeaf> leaves) {
  Binder binder(leaves);
  STOKER_ASSIGN_OR_RETURN(test, binder.test(condition));
  RowFilter filter;
  filter.test_ = std::move(test);
  filter.leaves_ = binder.take_used_leaves();
  for (const std::size_t number : filter.leaves_) filter.used_leaves_.push_back(leaves[number]);
  return filter;
}

bool RowFilter::may_match(std::span<const ParquetRange> ranges, std::uint64_t rows) const {
  return (GroupEvaluator(used_leaves_, ranges, rows).evaluate(test_) & kTrue) != 0;
}

bool RowFilter::may_match(std::span<const ParquetValues> values, std::uint64_t row) const {
  return (RowEvaluator(used_leaves_, values, row).evaluate(test_) & kTrue) != 0;
}

bool RowFilter::matches(std::span<const ParquetValues> values, std::uint64_t row) const {
  return RowEvaluator(used_leaves_, values, row).evaluate(test_) == kTrue;
}

}  // namespace stoker::sources
