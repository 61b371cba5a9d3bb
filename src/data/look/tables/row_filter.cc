#include "data/look/tables/row_filter.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "data/look/tables/leaf_kind.h"
#include "data/look/tables/pattern.h"

namespace stoker::data {

namespace {

using formats::ParquetLeaf;
using formats::ParquetRange;
using formats::ParquetValues;
using Kind = Condition::Kind;
using Test = RowFilter::Test;

// What a test may come to, as a set.
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

// Of two that must both hold. A set each, so that single outcomes are a case of it.
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
    of = both(of, is_any || test.kind == Kind::no ? negated(found) : found);
    if (of == kFalse) break;  // whatever the others are
  }
  return is_any ? negated(of) : of;
}

// One row.
class Row {
 public:
  Row(std::span<const ParquetLeaf> leaves, std::span<const ParquetValues> values, std::uint64_t row)
      : leaves_(leaves), values_(values), row_(row) {}

  Outcomes of(const Test& test) const {
    switch (test.kind) {
      case Kind::all:
      case Kind::any:
      case Kind::no:
        return combined(test, [this](const Test& part) { return of(part); });
      case Kind::is_null:
        return is_there(test.column) ? kFalse : kTrue;
      case Kind::anything:
        return kTrue | kFalse | kUnknown;
      default:
        break;
    }
    if (!is_there(test.column) || (test.other && !is_there(*test.other))) return kUnknown;
    return holds(test) ? kTrue : kFalse;
  }

 private:
  bool is_there(std::size_t column) const { return values_[column].is_row_present(row_); }
  formats::Number number(std::size_t column) const {
    return number_at(values_[column], leaves_[column], row_);
  }
  std::string_view text(std::size_t column) const { return values_[column].texts[row_]; }
  bool has_text(std::size_t column) const { return leaves_[column].type == ParquetLeaf::Type::bytes; }

  bool holds(const Test& test) const {
    if (test.kind == Kind::is_nan) return number(test.column).is_nan();
    if (test.kind == Kind::like) return matches(text(test.column), test.texts[0], {'%', '_'});
    if (has_text(test.column)) {
      const std::string_view own = text(test.column);
      if (test.other) return fits(own <=> text(*test.other), test.comparison);
      return std::any_of(test.texts.begin(), test.texts.end(),
                         [&](std::string_view one) { return fits(own <=> one, test.comparison); });
    }
    const formats::Number own = number(test.column);
    if (test.other) return fits(own <=> number(*test.other), test.comparison);
    return std::any_of(test.numbers.begin(), test.numbers.end(),
                       [&](const formats::Number& one) { return fits(own <=> one, test.comparison); });
  }

  std::span<const ParquetLeaf> leaves_;
  std::span<const ParquetValues> values_;
  std::uint64_t row_;
};

// A row group, by what is said of it.
class Group {
 public:
  Group(std::span<const ParquetLeaf> leaves, std::span<const ParquetRange> ranges, std::uint64_t rows)
      : leaves_(leaves), ranges_(ranges), rows_(rows) {}

  Outcomes of(const Test& test) const {
    switch (test.kind) {
      case Kind::all:
      case Kind::any:
      case Kind::no:
        return combined(test, [this](const Test& part) { return of(part); });
      case Kind::is_null:
        return (all_there(test.column) ? 0 : kTrue) | (all_missing(test.column) ? 0 : kFalse);
      case Kind::anything:
        return kTrue | kFalse | kUnknown;
      default:
        break;
    }
    if (all_missing(test.column)) return kUnknown;
    Outcomes of = all_there(test.column) && !test.other ? 0 : kUnknown;
    if (test.kind == Kind::is_nan || test.kind == Kind::like || test.other) return of | kTrue | kFalse;
    const auto type = number_type(leaves_[test.column]);
    // A NaN is in no range.
    if (type && formats::is_floating(*type)) of |= test.comparison == Comparison::unequal ? kTrue : kFalse;
    return type ? of | compared(test.numbers, test.comparison, numbers(ranges_[test.column], *type))
                : of | compared(test.texts, test.comparison, texts(ranges_[test.column]));
  }

 private:
  template <typename Value>
  struct Ends {
    std::optional<Value> least;
    std::optional<Value> most;
  };

  bool all_there(std::size_t column) const { return ranges_[column].missing == 0; }
  bool all_missing(std::size_t column) const { return ranges_[column].missing == rows_; }

  static Ends<formats::Number> numbers(const ParquetRange& range, DType type) {
    const auto of = [type](const std::optional<std::string>& end) -> std::optional<formats::Number> {
      if (!end || end->size() != size_of(type)) return std::nullopt;
      const formats::Number found =
          formats::load_number(type, reinterpret_cast<const std::byte*>(end->data()));
      return found.is_nan() ? std::nullopt : std::optional(found);
    };
    return {of(range.least), of(range.most)};
  }
  static Ends<std::string> texts(const ParquetRange& range) { return {range.least, range.most}; }

  // Whether a value between the ends may compare so with one of these, and whether one may not.
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

// Looks columns up, and turns what they are compared with into their kind.
class Binder {
 public:
  explicit Binder(std::span<const ParquetLeaf> leaves) : leaves_(leaves) {}

  std::vector<std::size_t> take_used() { return std::move(used_); }

  Result<Test> test(const Condition& condition) {
    Test test{.kind = condition.kind, .comparison = condition.comparison};
    for (const Condition& part : condition.parts) {
      OK_OR_RETURN(bound, this->test(part));
      test.parts.push_back(std::move(bound));
    }
    if (condition.terms.empty()) return test;
    const Term& first = condition.terms[0];
    OK_OR_RETURN(column, column_of(first));
    test.column = column;
    if (condition.kind == Kind::is_null) return test;
    RETURN_IF_ERROR(check_comparable(first, leaf(column), condition));
    if (condition.kind == Kind::holds) {
      test.kind = Kind::compare;
      test.numbers.emplace_back(std::int64_t{1});
    }
    for (std::size_t i = 1; i < condition.terms.size(); ++i) {
      const Term& term = condition.terms[i];
      if (std::holds_alternative<Term::Column>(term.value)) {
        RETURN_IF_ERROR(bind_other(first, term, test));
      } else {
        RETURN_IF_ERROR(bind_literal(first, term, test));
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
      const std::string_view hint = term.word.starts_with('"') ? " (a text stands in single quotes)" : "";
      return wrong_word(term.at, term.word, format("no such column{}{}", suggestion(name, names), hint));
    }
    const auto number = static_cast<std::size_t>(found - leaves_.begin());
    const auto used = std::find(used_.begin(), used_.end(), number);
    if (used != used_.end()) return static_cast<std::size_t>(used - used_.begin());
    used_.push_back(number);
    return used_.size() - 1;
  }

  static Status check_comparable(const Term& term, const ParquetLeaf& leaf, const Condition& condition) {
    const auto type = number_type(leaf);
    const bool is_readable = leaf.lists == 0 && (type || is_text(leaf));
    if (!is_readable)
      return wrong_word(term.at, term.word, format("holds {}: only 'is null' goes with it", described(leaf)));
    if (condition.kind == Kind::is_nan && (!type || !formats::is_floating(*type)))
      return wrong_word(term.at, term.word, format("holds {}, which is never NaN", described(leaf)));
    if (condition.kind == Kind::like && type)
      return wrong_word(term.at, term.word, format("holds {}: 'like' is for text", described(leaf)));
    if (condition.kind == Kind::holds && type != DType::boolean)
      return wrong_word(term.at, term.word,
                        format("holds {}: a comparison is expected behind it", described(leaf)));
    return {};
  }

  Status bind_other(const Term& first, const Term& term, Test& test) {
    OK_OR_RETURN(other, column_of(term));
    const ParquetLeaf& one = leaf(test.column);
    const ParquetLeaf& two = leaf(other);
    RETURN_IF_ERROR(check_comparable(term, two, Condition{.parts = {}, .terms = {}}));
    const bool is_same_kind = is_text(one) == is_text(two) && units_per_day(one) == units_per_day(two) &&
                              (number_type(one) == DType::boolean) == (number_type(two) == DType::boolean);
    if (!is_same_kind)
      return wrong_word(term.at, term.word,
                        format("holds {}, but {} {}", described(two), first.word, described(one)));
    test.other = other;
    return {};
  }

  Status bind_literal(const Term& first, const Term& term, Test& test) const {
    const ParquetLeaf& leaf = this->leaf(test.column);
    const auto type = number_type(leaf);
    const auto* const text = std::get_if<std::string>(&term.value);
    const auto* const truth = std::get_if<bool>(&term.value);
    const auto* const number = std::get_if<formats::Number>(&term.value);
    if (text && !type) {
      test.texts.push_back(*text);
    } else if (truth && type == DType::boolean) {
      test.numbers.emplace_back(std::int64_t{*truth ? 1 : 0});
    } else if (number && type && type != DType::boolean) {
      test.numbers.push_back(as_stored(*number, *type));
    } else if (const auto units = units_per_day(leaf); text && units) {
      const auto moment = moment_of(*text, *units);
      if (!moment)
        return wrong_word(term.at, term.word,
                          format("{} holds {}: write it as in '2026-11-23' or '2026-11-23 14:05:00'",
                                 first.word, described(leaf)));
      test.numbers.push_back(*moment);
    } else {
      const std::string_view expected = type == DType::boolean ? "true or false"
                                        : type                 ? "a number"
                                                               : "a text in single quotes";
      return wrong_word(term.at, term.word,
                        format("{} holds {}: {} is expected", first.word, described(leaf), expected));
    }
    return {};
  }

  // A fraction as the column would have it: 0.1 is what a float32 has in its place.
  static formats::Number as_stored(const formats::Number& number, DType type) {
    if (!number.is_real() || !formats::is_floating(type)) return number;
    std::byte bytes[sizeof(double)];
    return formats::store_number(number, type, bytes).empty() ? formats::load_number(type, bytes) : number;
  }

  std::span<const ParquetLeaf> leaves_;
  std::vector<std::size_t> used_;
};

}  // namespace

Result<RowFilter> RowFilter::create(const Condition& condition, std::span<const ParquetLeaf> leaves) {
  Binder binder(leaves);
  OK_OR_RETURN(test, binder.test(condition));
  RowFilter filter;
  filter.test_ = std::move(test);
  filter.leaves_ = binder.take_used();
  for (const std::size_t number : filter.leaves_) filter.known_.push_back(leaves[number]);
  return filter;
}

bool RowFilter::may_hold(std::span<const ParquetRange> ranges, std::uint64_t rows) const {
  return (Group(known_, ranges, rows).of(test_) & kTrue) != 0;
}

bool RowFilter::may_hold(std::span<const ParquetValues> values, std::uint64_t row) const {
  return (Row(known_, values, row).of(test_) & kTrue) != 0;
}

bool RowFilter::holds(std::span<const ParquetValues> values, std::uint64_t row) const {
  return Row(known_, values, row).of(test_) == kTrue;
}

}  // namespace stoker::data
