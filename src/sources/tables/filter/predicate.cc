// condition  = conjunction { "or" conjunction }
// conjunction = negation { "and" negation }
// negation   = "not" negation | "(" condition ")" | test
// test       = term ( [ COMPARISON term | ["not"] "in" "(" literal { "," literal } ")" | ["not"] "like" TEXT
//                     | ["not"] "between" literal "and" literal | "is" ["not"] ( "null" | "nan" ) ] )
// term       = COLUMN | "COLUMN" | literal
// literal    = ["-"] NUMBER | 'TEXT' | "true" | "false"
#include "sources/tables/filter/predicate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/encode.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

constexpr std::size_t kLongest = 64u << 10;
constexpr int kMaxDepth = 100;

struct Token {
  enum class Kind { name, quoted_name, text, number, sign, end };
  Kind kind = Kind::end;
  std::string value;  // of a name or text
  std::string shown;
  std::size_t at = 0;
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : text_(text) {}

  Result<Token> next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
    const std::size_t begin = at_;
    if (at_ == text_.size()) return Token{.at = begin + 1};
    const char c = text_[at_];
    if (c == '\'' || c == '"' || c == '`') return quoted(c);
    if (is_letter(c))
      return run(Token::Kind::name, [](char k) { return is_letter(k) || is_digit(k) || k == '.'; });
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    for (const std::string_view sign : {"<=", ">=", "!=", "<>", "==", "=", "<", ">", "(", ")", ",", "-"}) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      at_ += sign.size();
      return Token{
          .kind = Token::Kind::sign, .value = std::string(sign), .shown = std::string(sign), .at = begin + 1};
    }
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text_.substr(at_)));
    const std::string sign = printable(text_.substr(at_, length));
    const bool is_programmers = c == '&' || c == '|' || c == '~' || c == '!';
    return token_error(begin + 1, sign,
                       is_programmers ? "write and, or, not" : "is not valid in a condition");
  }

 private:
  char peek(std::size_t count) const { return at_ + count < text_.size() ? text_[at_ + count] : '\0'; }

  template <typename Belongs>
  Token run(Token::Kind kind, const Belongs& belongs) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    const std::string value(text_.substr(begin, at_ - begin));
    return {.kind = kind, .value = value, .shown = printable(value), .at = begin + 1};
  }

  Result<Token> number() {
    const auto belongs = [this](char c) {
      const bool is_power = (c == '+' || c == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      return is_letter(c) || is_digit(c) || c == '.' || is_power;
    };
    return run(Token::Kind::number, belongs);
  }

  // A doubled quote is a quote in the text.
  Result<Token> quoted(char quote) {
    const std::size_t begin = at_++;
    Token word{.kind = quote == '\'' ? Token::Kind::text : Token::Kind::quoted_name, .at = begin + 1};
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote && peek(0) != quote) {
        word.shown = printable(text_.substr(begin, at_ - begin));
        if (!is_utf8(word.value)) return token_error(word.at, word.shown, "is not UTF-8");
        return word;
      }
      if (c == quote) ++at_;
      word.value += c;
    }
    return token_error(begin + 1, std::string(1, quote), "the quote is not closed");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_reserved(std::string_view word) {
  constexpr std::string_view kWords[] = {"and", "or",   "not",  "in",    "between", "like",
                                         "is",  "null", "true", "false", "nan"};
  return std::ranges::find(kWords, to_lower(word)) != std::end(kWords);
}

// In double quotes where needed.
std::string quoted_column(std::string_view name) {
  const bool is_plain =
      !name.empty() && is_letter(name[0]) && !is_reserved(name) &&
      std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '.'; });
  if (is_plain) return std::string(name);
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::optional<Comparison> comparison_of(std::string_view sign) {
  constexpr std::pair<std::string_view, Comparison> kSigns[] = {
      {"=", Comparison::equal},    {"==", Comparison::equal},   {"!=", Comparison::unequal},
      {"<>", Comparison::unequal}, {"<", Comparison::less},     {"<=", Comparison::at_most},
      {">", Comparison::greater},  {">=", Comparison::at_least}};
  for (const auto& [known, comparison] : kSigns) {
    if (known == sign) return comparison;
  }
  return std::nullopt;
}

bool is_column(const Term& term) { return std::holds_alternative<Term::Column>(term.value); }

class PredicateParser {
 public:
  explicit PredicateParser(std::string_view text) : tokenizer_(text) {}

  Result<Predicate> parse() {
    STOKER_RETURN_IF_ERROR(advance());
    if (token_.kind == Token::Kind::end) return invalid("--where: is empty");
    STOKER_ASSIGN_OR_RETURN(condition, disjunction());
    if (token_.kind != Token::Kind::end) return unexpected("'and', 'or' or the end");
    return std::move(condition);
  }

 private:
  Status advance() {
    STOKER_ASSIGN_OR_RETURN(word, tokenizer_.next());
    token_ = std::move(word);
    return {};
  }

  bool is_keyword(std::string_view keyword) const {
    return token_.kind == Token::Kind::name && to_lower(token_.value) == keyword;
  }
  bool is_symbol(std::string_view sign) const {
    return token_.kind == Token::Kind::sign && token_.value == sign;
  }

  // Whether it was there.
  Result<bool> accept_keyword(std::string_view keyword) {
    if (!is_keyword(keyword)) return false;
    STOKER_RETURN_IF_ERROR(advance());
    return true;
  }
  Status expect_symbol(std::string_view sign) {
    if (!is_symbol(sign)) return unexpected(format("'{}'", sign));
    return advance();
  }

  Status unexpected(std::string_view expected) const {
    if (token_.kind == Token::Kind::end) return invalid("--where: ends where {} is expected", expected);
    return token_error(token_.at, token_.shown, format("{} is expected here", expected));
  }

  Result<Predicate> disjunction() { return chain(Predicate::Kind::any, "or"); }

  Result<Predicate> chain(Predicate::Kind kind, std::string_view keyword) {
    Predicate whole{.kind = kind, .parts = {}, .terms = {}};
    for (;;) {
      Result<Predicate> part = kind == Predicate::Kind::any ? chain(Predicate::Kind::all, "and") : negation();
      if (!part.ok()) return part;
      whole.parts.push_back(std::move(*part));
      STOKER_ASSIGN_OR_RETURN(continues, accept_keyword(keyword));
      if (continues) continue;
      if (whole.parts.size() > 1) return whole;
      Predicate only = std::move(whole.parts[0]);
      return only;
    }
  }

  Result<Predicate> negation() {
    if (++depth_ > kMaxDepth)
      return token_error(token_.at, token_.shown, "is nested too deeply (at most 100)");
    Result<Predicate> found = Predicate();
    if (is_keyword("not")) {
      STOKER_RETURN_IF_ERROR(advance());
      found = negation();
      if (found.ok()) found = negated(std::move(*found));
    } else if (is_symbol("(")) {
      STOKER_RETURN_IF_ERROR(advance());
      found = disjunction();
      if (found.ok()) STOKER_RETURN_IF_ERROR(expect_symbol(")"));
    } else {
      found = test();
    }
    --depth_;
    return found;
  }

  static Predicate negated(Predicate condition) {
    Predicate no{.kind = Predicate::Kind::negation, .parts = {}, .terms = {}};
    no.parts.push_back(std::move(condition));
    return no;
  }

  Result<Predicate> test() {
    STOKER_ASSIGN_OR_RETURN(first, term());
    Predicate condition{.kind = Predicate::Kind::compare, .parts = {}, .terms = {}};
    condition.terms.push_back(std::move(first));
    if (token_.kind == Token::Kind::sign) {
      if (const auto comparison = comparison_of(token_.value)) {
        condition.comparison = *comparison;
        STOKER_RETURN_IF_ERROR(advance());
        STOKER_ASSIGN_OR_RETURN(second, term());
        condition.terms.push_back(std::move(second));
        return checked(std::move(condition));
      }
    }
    STOKER_ASSIGN_OR_RETURN(has_is, accept_keyword("is"));
    if (has_is) return is_null_or_nan(std::move(condition));
    STOKER_ASSIGN_OR_RETURN(has_not, accept_keyword("not"));
    Result<Predicate> found = in_like_between(std::move(condition), has_not);
    if (!found.ok() || !has_not) return found;
    return negated(std::move(*found));
  }

  Result<Predicate> is_null_or_nan(Predicate condition) {
    STOKER_ASSIGN_OR_RETURN(has_not, accept_keyword("not"));
    if (!is_keyword("null") && !is_keyword("nan")) return unexpected("'null', 'not null' or 'nan'");
    condition.kind = is_keyword("null") ? Predicate::Kind::is_null : Predicate::Kind::is_nan;
    STOKER_RETURN_IF_ERROR(advance());
    STOKER_ASSIGN_OR_RETURN(found, checked(std::move(condition)));
    if (has_not) return negated(std::move(found));
    return std::move(found);
  }

  Result<Predicate> in_like_between(Predicate condition, bool has_not) {
    if (is_keyword("in")) {
      STOKER_RETURN_IF_ERROR(advance());
      condition.kind = Predicate::Kind::in_list;
      STOKER_RETURN_IF_ERROR(expect_symbol("("));
      for (;;) {
        STOKER_ASSIGN_OR_RETURN(literal, literal_term());
        condition.terms.push_back(std::move(literal));
        if (!is_symbol(",")) break;
        STOKER_RETURN_IF_ERROR(advance());
      }
      STOKER_RETURN_IF_ERROR(expect_symbol(")"));
      return checked(std::move(condition));
    }
    if (is_keyword("like")) {
      STOKER_RETURN_IF_ERROR(advance());
      condition.kind = Predicate::Kind::like;
      if (token_.kind != Token::Kind::text) return unexpected("a text in single quotes");
      STOKER_ASSIGN_OR_RETURN(pattern, literal_term());
      condition.terms.push_back(std::move(pattern));
      return checked(std::move(condition));
    }
    if (is_keyword("between")) return between(std::move(condition));
    if (has_not) return unexpected("'in', 'like' or 'between'");
    if (!is_column(condition.terms[0])) return unexpected("a comparison");
    condition.kind = Predicate::Kind::is_true;
    return condition;
  }

  Result<Predicate> between(Predicate condition) {
    STOKER_RETURN_IF_ERROR(advance());
    Predicate both{.kind = Predicate::Kind::all, .parts = {}, .terms = {}};
    for (const Comparison side : {Comparison::at_least, Comparison::at_most}) {
      if (side == Comparison::at_most) {
        STOKER_ASSIGN_OR_RETURN(has_and, accept_keyword("and"));
        if (!has_and) return unexpected("'and' between the two ends");
      }
      STOKER_ASSIGN_OR_RETURN(end, literal_term());
      Predicate one = condition;
      one.comparison = side;
      one.terms.push_back(std::move(end));
      STOKER_ASSIGN_OR_RETURN(right, checked(std::move(one)));
      both.parts.push_back(std::move(right));
    }
    return both;
  }

  // Puts the column first.
  static Result<Predicate> checked(Predicate condition) {
    const bool is_compared = condition.kind == Predicate::Kind::compare;
    if (is_compared && !is_column(condition.terms[0]) && is_column(condition.terms[1])) {
      constexpr std::array<Comparison, 6> kTurned = {Comparison::equal,   Comparison::unequal,
                                                     Comparison::greater, Comparison::at_least,
                                                     Comparison::less,    Comparison::at_most};
      std::swap(condition.terms[0], condition.terms[1]);
      condition.comparison = kTurned[static_cast<std::size_t>(condition.comparison)];
    }
    const Term& first = condition.terms[0];
    if (!is_column(first)) return token_error(first.at, first.word, "is not compared with a column");
    return condition;
  }

  Result<Term> literal_term() {
    STOKER_ASSIGN_OR_RETURN(found, term());
    if (!is_column(found)) return std::move(found);
    return token_error(found.at, found.word,
                       "is a column, where a number or a text in single quotes is expected");
  }

  Result<Term> term() {
    Term term{.value = false, .at = token_.at, .word = token_.shown};
    const bool is_negative = is_symbol("-");
    if (is_negative) STOKER_RETURN_IF_ERROR(advance());
    if (token_.kind == Token::Kind::number) {
      if (is_negative) term.word = "-" + token_.shown;
      const auto number = parquet::number_from_text((is_negative ? "-" : "") + token_.value);
      if (!number) return token_error(term.at, term.word, "is not a number");
      term.value = *number;
    } else if (is_negative) {
      return unexpected("a number");
    } else if (token_.kind == Token::Kind::text) {
      term.value = token_.value;
    } else if (is_keyword("true") || is_keyword("false")) {
      term.value = is_keyword("true");
    } else if (is_keyword("null")) {
      return token_error(term.at, term.word, "no value equals null: write 'is null' or 'is not null'");
    } else if (token_.kind == Token::Kind::quoted_name ||
               (token_.kind == Token::Kind::name && !is_reserved_word())) {
      term.value = Term::Column{token_.value};
    } else {
      return unexpected("a column, a number or a text");
    }
    STOKER_RETURN_IF_ERROR(advance());
    return term;
  }

  bool is_reserved_word() const {
    for (const std::string_view keyword : {"and", "or", "not", "in", "is", "like", "between"}) {
      if (is_keyword(keyword)) return true;
    }
    return false;
  }

  Tokenizer tokenizer_;
  Token token_;
  int depth_ = 0;
};

}  // namespace

Status token_error(std::size_t at, std::string_view word, std::string_view what) {
  constexpr std::size_t kShown = 40;
  const std::string cut =
      word.size() > kShown ? printable(word.substr(0, kShown)) + "..." : std::string(word);
  return invalid("--where: character {}, '{}': {}", at, cut, what);
}

Result<Predicate> parse_predicate(std::string_view text) {
  if (text.size() > kLongest) return invalid("--where: is longer than 64 KiB");
  return PredicateParser(text).parse();
}

std::string where_present(std::string_view column) {
  return format("--where {}", shell_quote(quoted_column(column) + " is not null"));
}

}  // namespace stoker::sources
