#include "sweep/space/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace stoker::sweep {

// An operation over terms, a name, or a constant.
struct Expression::Term {
  std::string operation;  // "" for a constant, "name", or as written
  Value constant;         // of a name: the name
  std::vector<std::shared_ptr<const Term>> operands;
};

namespace {

using Term = Expression::Term;
using TermPointer = std::shared_ptr<const Term>;
// Nullopt: a name in it has no value.
using Evaluated = Result<std::optional<Value>>;
using Lookup = std::function<std::optional<Value>(std::string_view)>;

constexpr std::size_t kMostCharacters = 2'000;
constexpr int kMostLevels = 64;

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c) || c == '.' || c == '-'; }

// Recursive descent, one function for each level of precedence.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<TermPointer> parse() {
    STOKER_ASSIGN_OR_RETURN(root, parse_or());
    skip_blanks();
    if (at_ < text_.size()) return error("unexpected text");
    return root;
  }
  std::vector<std::string> names() && {
    std::sort(names_.begin(), names_.end());
    names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
    return std::move(names_);
  }

 private:
  using Level = Result<TermPointer> (Parser::*)();

  static TermPointer make(std::string operation, std::vector<TermPointer> operands) {
    return std::make_shared<Term>(Term{std::move(operation), {}, std::move(operands)});
  }
  static TermPointer constant(Value value) { return std::make_shared<Term>(Term{"", std::move(value), {}}); }
  Status error(std::string_view fact) const {
    return invalid("constraint '{}': {} at column {}", text_, fact, at_ + 1);
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  // Whether this operator comes next; skips it. A word must end there, and `*` is no part of `**`.
  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (end < text_.size()) {
      if (is_name_start(token[0]) && is_name_part(text_[end])) return false;
      constexpr std::array<std::string_view, 6> kLonger = {"**", "//", "<=", ">=", "==", "!="};
      for (std::string_view longer : kLonger) {
        if (longer.size() > token.size() && longer.starts_with(token) && longer[token.size()] == text_[end])
          return false;
      }
    }
    at_ = end;
    return true;
  }
  template <std::size_t N>
  Result<TermPointer> parse_left(Level next, const std::array<std::string_view, N>& operators) {
    STOKER_ASSIGN_OR_RETURN(left, (this->*next)());
    for (;;) {
      const auto found =
          std::find_if(operators.begin(), operators.end(), [&](std::string_view o) { return accept(o); });
      if (found == operators.end()) return left;
      STOKER_ASSIGN_OR_RETURN(right, (this->*next)());
      left = make(std::string(*found), {left, right});
    }
  }
  Result<TermPointer> parse_or() {
    return parse_left(&Parser::parse_and, std::array<std::string_view, 1>{"or"});
  }
  Result<TermPointer> parse_and() {
    return parse_left(&Parser::parse_not, std::array<std::string_view, 1>{"and"});
  }
  Result<TermPointer> parse_not() {
    if (!accept("not")) return parse_comparison();
    if (++levels_ > kMostLevels) return error("nested too deep");
    STOKER_ASSIGN_OR_RETURN(operand, parse_not());
    --levels_;
    return make("not", {operand});
  }
  // `a < b < c` means `a < b and b < c`, as in Python.
  Result<TermPointer> parse_comparison() {
    constexpr std::array<std::string_view, 6> kOperators = {"<=", ">=", "==", "!=", "<", ">"};
    STOKER_ASSIGN_OR_RETURN(left, parse_sum());
    TermPointer all;
    for (;;) {
      TermPointer one;
      if (accept("in")) {
        STOKER_ASSIGN_OR_RETURN(list, parse_list(left));
        one = list;
      } else {
        const auto found =
            std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view o) { return accept(o); });
        if (found == kOperators.end()) return all ? all : left;
        STOKER_ASSIGN_OR_RETURN(right, parse_sum());
        one = make(std::string(*found), {left, right});
        left = right;
      }
      all = all ? make("and", {all, one}) : one;
    }
  }
  Result<TermPointer> parse_list(const TermPointer& value) {
    const bool is_bracket = accept("[");
    if (!is_bracket && !accept("(")) return error("expected '(' after 'in'");
    std::vector<TermPointer> operands = {value};
    do {
      STOKER_ASSIGN_OR_RETURN(item, parse_sum());
      operands.push_back(item);
    } while (accept(","));
    if (!accept(is_bracket ? "]" : ")")) return error("expected the end of the list");
    return make("in", std::move(operands));
  }
  Result<TermPointer> parse_sum() {
    return parse_left(&Parser::parse_product, std::array<std::string_view, 2>{"+", "-"});
  }
  Result<TermPointer> parse_product() {
    return parse_left(&Parser::parse_sign, std::array<std::string_view, 4>{"*", "//", "/", "%"});
  }
  Result<TermPointer> parse_sign() {
    const bool is_negative = accept("-");
    if (!is_negative && !accept("+")) return parse_power();
    if (++levels_ > kMostLevels) return error("nested too deep");
    STOKER_ASSIGN_OR_RETURN(operand, parse_sign());
    --levels_;
    return is_negative ? make("negative", {operand}) : operand;
  }
  Result<TermPointer> parse_power() {
    STOKER_ASSIGN_OR_RETURN(base, parse_atom());
    if (!accept("**")) return base;
    if (++levels_ > kMostLevels) return error("nested too deep");
    STOKER_ASSIGN_OR_RETURN(exponent, parse_sign());
    --levels_;
    return make("**", {base, exponent});
  }
  Result<TermPointer> parse_atom() {
    skip_blanks();
    if (at_ >= text_.size()) return error("expected a value");
    const char c = text_[at_];
    if (accept("(")) {
      if (++levels_ > kMostLevels) return error("nested too deep");
      STOKER_ASSIGN_OR_RETURN(inner, parse_or());
      --levels_;
      if (!accept(")")) return error("expected ')'");
      return inner;
    }
    if (c == '\'' || c == '"') return parse_text(c);
    if (is_digit(c) || c == '.') return parse_number_constant();
    if (!is_name_start(c)) return error("expected a value");
    return parse_word();
  }
  Result<TermPointer> parse_text(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return error("text without its closing quote");
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return constant(std::string(inner));
  }
  Result<TermPointer> parse_number_constant() {
    const char* const first = text_.data() + at_;
    const char* const last = text_.data() + text_.size();
    double number = 0;
    const auto [end, problem] = std::from_chars(first, last, number);
    if (problem != std::errc{} || (end != last && is_name_start(*end))) return error("expected a number");
    at_ += static_cast<std::size_t>(end - first);
    std::int64_t whole = 0;
    const auto [whole_end, whole_problem] = std::from_chars(first, end, whole);
    if (whole_problem == std::errc{} && whole_end == end) return constant(whole);
    return constant(number);
  }
  Result<TermPointer> parse_word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) {
      // A dash belongs to a name only between its letters: `a-b` is a name, `a - b` and `a -b` subtract.
      if (text_[at_] == '-' && (at_ + 1 >= text_.size() || !is_name_start(text_[at_ + 1]))) break;
      ++at_;
    }
    const std::string_view word = text_.substr(start, at_ - start);
    if (word == "true" || word == "True") return constant(true);
    if (word == "false" || word == "False") return constant(false);
    for (std::string_view reserved : {"and", "or", "not", "in"}) {
      if (word == reserved) return error("expected a value before this");
    }
    names_.emplace_back(word);
    return std::make_shared<Term>(Term{"name", std::string(word), {}});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int levels_ = 0;
  std::vector<std::string> names_;
};

Result<double> number_in(const Value& value) {
  if (const auto number = number_of(value)) return *number;
  return invalid("'{}' is text, where a number is expected", to_text(value));
}

Evaluated arithmetic(std::string_view operation, const Value& left, const Value& right) {
  STOKER_ASSIGN_OR_RETURN(a, number_in(left));
  STOKER_ASSIGN_OR_RETURN(b, number_in(right));
  if (operation == "+") return Value(a + b);
  if (operation == "-") return Value(a - b);
  if (operation == "*") return Value(a * b);
  if (operation == "**") return Value(std::pow(a, b));
  if (b == 0) return invalid("division by 0");
  if (operation == "/") return Value(a / b);
  if (operation == "//") return Value(std::floor(a / b));
  return Value(a - b * std::floor(a / b));
}

Evaluated compare(std::string_view operation, const Value& left, const Value& right) {
  if (operation == "==") return Value(is_same_value(left, right));
  if (operation == "!=") return Value(!is_same_value(left, right));
  const auto* const left_text = std::get_if<std::string>(&left);
  const auto* const right_text = std::get_if<std::string>(&right);
  int order = 0;
  if (left_text != nullptr && right_text != nullptr) {
    order = left_text->compare(*right_text);
  } else {
    STOKER_ASSIGN_OR_RETURN(a, number_in(left));
    STOKER_ASSIGN_OR_RETURN(b, number_in(right));
    if (std::isnan(a) || std::isnan(b)) return Value(false);
    order = a < b ? -1 : a > b ? 1 : 0;
  }
  if (operation == "<") return Value(order < 0);
  if (operation == "<=") return Value(order <= 0);
  if (operation == ">") return Value(order > 0);
  return Value(order >= 0);
}

Result<bool> truth_of(const Value& value) {
  if (const bool* const truth = std::get_if<bool>(&value)) return *truth;
  return invalid("'{}' is a value, where a condition is expected", to_text(value));
}

Evaluated evaluate(const Term& term, const Lookup& value_of);

// `and` with `decisive` false, `or` with `decisive` true: one decisive operand is enough.
Evaluated evaluate_logic(const Term& term, bool decisive, const Lookup& value_of) {
  bool is_known = true;
  for (const TermPointer& operand : term.operands) {
    STOKER_ASSIGN_OR_RETURN(value, evaluate(*operand, value_of));
    if (!value) {
      is_known = false;
      continue;
    }
    STOKER_ASSIGN_OR_RETURN(truth, truth_of(*value));
    if (truth == decisive) return Value(decisive);
  }
  if (!is_known) return std::optional<Value>();
  return Value(!decisive);
}

Evaluated evaluate(const Term& term, const Lookup& value_of) {
  if (term.operation.empty()) return term.constant;
  if (term.operation == "name") return value_of(std::get<std::string>(term.constant));
  if (term.operation == "and") return evaluate_logic(term, false, value_of);
  if (term.operation == "or") return evaluate_logic(term, true, value_of);
  std::vector<Value> operands;
  for (const TermPointer& operand : term.operands) {
    STOKER_ASSIGN_OR_RETURN(value, evaluate(*operand, value_of));
    if (!value) return std::optional<Value>();
    operands.push_back(*std::move(value));
  }
  if (term.operation == "not") {
    STOKER_ASSIGN_OR_RETURN(truth, truth_of(operands[0]));
    return Value(!truth);
  }
  if (term.operation == "negative") {
    STOKER_ASSIGN_OR_RETURN(number, number_in(operands[0]));
    return Value(-number);
  }
  if (term.operation == "in") {
    return Value(std::any_of(operands.begin() + 1, operands.end(),
                             [&](const Value& item) { return is_same_value(operands[0], item); }));
  }
  constexpr std::string_view kComparisons = " == != < <= > >= ";
  if (kComparisons.find(" " + term.operation + " ") != std::string_view::npos)
    return compare(term.operation, operands[0], operands[1]);
  return arithmetic(term.operation, operands[0], operands[1]);
}

}  // namespace

std::string to_text(const Value& value) {
  if (const bool* const truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return format("{}", *whole);
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), std::get<double>(value));
  return {digits.data(), end.ptr};
}

std::optional<double> number_of(const Value& value) {
  if (const bool* const truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const double* const number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

bool is_same_value(const Value& a, const Value& b) {
  const bool is_number_a = !std::holds_alternative<bool>(a) && !std::holds_alternative<std::string>(a);
  const bool is_number_b = !std::holds_alternative<bool>(b) && !std::holds_alternative<std::string>(b);
  if (is_number_a && is_number_b) return number_of(a) == number_of(b);
  return a == b;
}

Result<Expression> Expression::parse(std::string_view text) {
  if (text.size() > kMostCharacters)
    return invalid("constraint of {} characters (at most {})", text.size(), kMostCharacters);
  Parser parser(text);
  STOKER_ASSIGN_OR_RETURN(root, parser.parse());
  Expression expression;
  expression.text_ = text;
  expression.root_ = root;
  expression.names_ = std::move(parser).names();
  return expression;
}

Result<std::optional<bool>> Expression::holds(const Lookup& value_of) const {
  auto value = evaluate(*root_, value_of);
  if (!value) return std::move(value).error().with_context(format("constraint '{}'", text_));
  if (!*value) return std::optional<bool>();
  const auto truth = truth_of(**value);
  if (!truth) return Status(truth.error()).with_context(format("constraint '{}'", text_));
  return std::optional<bool>(*truth);
}

}  // namespace stoker::sweep
