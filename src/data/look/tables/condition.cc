// condition  = conjunction { "or" conjunction }
// conjunction = negation { "and" negation }
// negation   = "not" negation | "(" condition ")" | test
// test       = term ( [ COMPARISON term | ["not"] "in" "(" literal { "," literal } ")" | ["not"] "like" TEXT
//                     | ["not"] "between" literal "and" literal | "is" ["not"] ( "null" | "nan" ) ] )
// term       = COLUMN | "COLUMN" | literal
// literal    = ["-"] NUMBER | 'TEXT' | "true" | "false"
#include "data/look/tables/condition.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/encode.h"
#include "base/text.h"

namespace stoker::data {

namespace {

constexpr std::size_t kLongest = 64u << 10;
constexpr int kDeepest = 100;

struct Word {
  enum class Kind { name, quoted_name, text, number, sign, end };
  Kind kind = Kind::end;
  std::string value;  // of a name, a text
  std::string shown;
  std::size_t at = 0;
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  Result<Word> next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
    const std::size_t begin = at_;
    if (at_ == text_.size()) return Word{.at = begin + 1};
    const char c = text_[at_];
    if (c == '\'' || c == '"' || c == '`') return quoted(c);
    if (is_letter(c))
      return run(Word::Kind::name, [](char k) { return is_letter(k) || is_digit(k) || k == '.'; });
    if (is_digit(c) || (c == '.' && is_digit(after(1)))) return number();
    for (const std::string_view sign : {"<=", ">=", "!=", "<>", "==", "=", "<", ">", "(", ")", ",", "-"}) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      at_ += sign.size();
      return Word{
          .kind = Word::Kind::sign, .value = std::string(sign), .shown = std::string(sign), .at = begin + 1};
    }
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text_.substr(at_)));
    const std::string sign = printable(text_.substr(at_, length));
    const bool is_programmers = c == '&' || c == '|' || c == '~' || c == '!';
    return wrong_word(begin + 1, sign, is_programmers ? "write and, or, not" : "is no part of a condition");
  }

 private:
  char after(std::size_t count) const { return at_ + count < text_.size() ? text_[at_ + count] : '\0'; }

  template <typename Belongs>
  Word run(Word::Kind kind, const Belongs& belongs) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    const std::string value(text_.substr(begin, at_ - begin));
    return {.kind = kind, .value = value, .shown = printable(value), .at = begin + 1};
  }

  Result<Word> number() {
    const auto belongs = [this](char c) {
      const bool is_power = (c == '+' || c == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      return is_letter(c) || is_digit(c) || c == '.' || is_power;
    };
    return run(Word::Kind::number, belongs);
  }

  // A quote in it is written twice.
  Result<Word> quoted(char quote) {
    const std::size_t begin = at_++;
    Word word{.kind = quote == '\'' ? Word::Kind::text : Word::Kind::quoted_name, .at = begin + 1};
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote && after(0) != quote) {
        word.shown = printable(text_.substr(begin, at_ - begin));
        if (!is_utf8(word.value)) return wrong_word(word.at, word.shown, "is not UTF-8");
        return word;
      }
      if (c == quote) ++at_;
      word.value += c;
    }
    return wrong_word(begin + 1, std::string(1, quote), "the quote is never closed");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

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

class Parser {
 public:
  explicit Parser(std::string_view text) : words_(text) {}

  Result<Condition> whole() {
    RETURN_IF_ERROR(advance());
    if (word_.kind == Word::Kind::end) return invalid("--where: is empty");
    OK_OR_RETURN(condition, either());
    if (word_.kind != Word::Kind::end) return unexpected("'and', 'or' or the end");
    return std::move(condition);
  }

 private:
  Status advance() {
    OK_OR_RETURN(word, words_.next());
    word_ = std::move(word);
    return {};
  }

  bool is_word(std::string_view keyword) const {
    return word_.kind == Word::Kind::name && to_lower(word_.value) == keyword;
  }
  bool is_sign(std::string_view sign) const { return word_.kind == Word::Kind::sign && word_.value == sign; }

  // Whether it was there.
  Result<bool> take_word(std::string_view keyword) {
    if (!is_word(keyword)) return false;
    RETURN_IF_ERROR(advance());
    return true;
  }
  Status take_sign(std::string_view sign) {
    if (!is_sign(sign)) return unexpected(format("'{}'", sign));
    return advance();
  }

  Status unexpected(std::string_view expected) const {
    if (word_.kind == Word::Kind::end) return invalid("--where: ends where {} is expected", expected);
    return wrong_word(word_.at, word_.shown, format("{} is expected here", expected));
  }

  Result<Condition> either() { return chain(Condition::Kind::any, "or"); }

  Result<Condition> chain(Condition::Kind kind, std::string_view keyword) {
    Condition whole{.kind = kind, .parts = {}, .terms = {}};
    for (;;) {
      Result<Condition> part = kind == Condition::Kind::any ? chain(Condition::Kind::all, "and") : negation();
      if (!part.ok()) return part;
      whole.parts.push_back(std::move(*part));
      OK_OR_RETURN(goes_on, take_word(keyword));
      if (goes_on) continue;
      if (whole.parts.size() > 1) return whole;
      Condition only = std::move(whole.parts[0]);
      return only;
    }
  }

  Result<Condition> negation() {
    if (++depth_ > kDeepest) return wrong_word(word_.at, word_.shown, "stands too deep (at most 100)");
    Result<Condition> found = Condition();
    if (is_word("not")) {
      RETURN_IF_ERROR(advance());
      found = negation();
      if (found.ok()) found = negated(std::move(*found));
    } else if (is_sign("(")) {
      RETURN_IF_ERROR(advance());
      found = either();
      if (found.ok()) RETURN_IF_ERROR(take_sign(")"));
    } else {
      found = test();
    }
    --depth_;
    return found;
  }

  static Condition negated(Condition condition) {
    Condition no{.kind = Condition::Kind::no, .parts = {}, .terms = {}};
    no.parts.push_back(std::move(condition));
    return no;
  }

  Result<Condition> test() {
    OK_OR_RETURN(first, term());
    Condition condition{.kind = Condition::Kind::compare, .parts = {}, .terms = {}};
    condition.terms.push_back(std::move(first));
    if (word_.kind == Word::Kind::sign) {
      if (const auto comparison = comparison_of(word_.value)) {
        condition.comparison = *comparison;
        RETURN_IF_ERROR(advance());
        OK_OR_RETURN(second, term());
        condition.terms.push_back(std::move(second));
        return checked(std::move(condition));
      }
    }
    OK_OR_RETURN(has_is, take_word("is"));
    if (has_is) return is_something(std::move(condition));
    OK_OR_RETURN(has_not, take_word("not"));
    Result<Condition> found = among_like_between(std::move(condition), has_not);
    if (!found.ok() || !has_not) return found;
    return negated(std::move(*found));
  }

  Result<Condition> is_something(Condition condition) {
    OK_OR_RETURN(has_not, take_word("not"));
    if (!is_word("null") && !is_word("nan")) return unexpected("'null', 'not null' or 'nan'");
    condition.kind = is_word("null") ? Condition::Kind::is_null : Condition::Kind::is_nan;
    RETURN_IF_ERROR(advance());
    OK_OR_RETURN(found, checked(std::move(condition)));
    if (has_not) return negated(std::move(found));
    return std::move(found);
  }

  Result<Condition> among_like_between(Condition condition, bool has_not) {
    if (is_word("in")) {
      RETURN_IF_ERROR(advance());
      condition.kind = Condition::Kind::among;
      RETURN_IF_ERROR(take_sign("("));
      for (;;) {
        OK_OR_RETURN(literal, literal_term());
        condition.terms.push_back(std::move(literal));
        if (!is_sign(",")) break;
        RETURN_IF_ERROR(advance());
      }
      RETURN_IF_ERROR(take_sign(")"));
      return checked(std::move(condition));
    }
    if (is_word("like")) {
      RETURN_IF_ERROR(advance());
      condition.kind = Condition::Kind::like;
      if (word_.kind != Word::Kind::text) return unexpected("a text in single quotes");
      OK_OR_RETURN(pattern, literal_term());
      condition.terms.push_back(std::move(pattern));
      return checked(std::move(condition));
    }
    if (is_word("between")) return between(std::move(condition));
    if (has_not) return unexpected("'in', 'like' or 'between'");
    if (!is_column(condition.terms[0])) return unexpected("a comparison");
    condition.kind = Condition::Kind::holds;
    return condition;
  }

  Result<Condition> between(Condition condition) {
    RETURN_IF_ERROR(advance());
    Condition both{.kind = Condition::Kind::all, .parts = {}, .terms = {}};
    for (const Comparison side : {Comparison::at_least, Comparison::at_most}) {
      if (side == Comparison::at_most) {
        OK_OR_RETURN(has_and, take_word("and"));
        if (!has_and) return unexpected("'and' between the two ends");
      }
      OK_OR_RETURN(end, literal_term());
      Condition one = condition;
      one.comparison = side;
      one.terms.push_back(std::move(end));
      OK_OR_RETURN(right, checked(std::move(one)));
      both.parts.push_back(std::move(right));
    }
    return both;
  }

  // The column first, whatever way round it was written.
  static Result<Condition> checked(Condition condition) {
    const bool is_compared = condition.kind == Condition::Kind::compare;
    if (is_compared && !is_column(condition.terms[0]) && is_column(condition.terms[1])) {
      constexpr std::array<Comparison, 6> kTurned = {Comparison::equal,   Comparison::unequal,
                                                     Comparison::greater, Comparison::at_least,
                                                     Comparison::less,    Comparison::at_most};
      std::swap(condition.terms[0], condition.terms[1]);
      condition.comparison = kTurned[static_cast<std::size_t>(condition.comparison)];
    }
    const Term& first = condition.terms[0];
    if (!is_column(first)) return wrong_word(first.at, first.word, "is compared with no column");
    return condition;
  }

  Result<Term> literal_term() {
    OK_OR_RETURN(found, term());
    if (!is_column(found)) return std::move(found);
    return wrong_word(found.at, found.word,
                      "is a column, where a number or a text in single quotes is expected");
  }

  Result<Term> term() {
    Term term{.value = false, .at = word_.at, .word = word_.shown};
    const bool is_negative = is_sign("-");
    if (is_negative) RETURN_IF_ERROR(advance());
    if (word_.kind == Word::Kind::number) {
      if (is_negative) term.word = "-" + word_.shown;
      const auto number = formats::number_of((is_negative ? "-" : "") + word_.value);
      if (!number) return wrong_word(term.at, term.word, "is no number");
      term.value = *number;
    } else if (is_negative) {
      return unexpected("a number");
    } else if (word_.kind == Word::Kind::text) {
      term.value = word_.value;
    } else if (is_word("true") || is_word("false")) {
      term.value = is_word("true");
    } else if (is_word("null")) {
      return wrong_word(term.at, term.word, "nothing is equal to it: write 'is null' or 'is not null'");
    } else if (word_.kind == Word::Kind::quoted_name || (word_.kind == Word::Kind::name && !is_keyword())) {
      term.value = Term::Column{word_.value};
    } else {
      return unexpected("a column, a number or a text");
    }
    RETURN_IF_ERROR(advance());
    return term;
  }

  bool is_keyword() const {
    for (const std::string_view keyword : {"and", "or", "not", "in", "is", "like", "between"}) {
      if (is_word(keyword)) return true;
    }
    return false;
  }

  Words words_;
  Word word_;
  int depth_ = 0;
};

}  // namespace

Status wrong_word(std::size_t at, std::string_view word, std::string_view what) {
  constexpr std::size_t kShown = 40;
  const std::string cut =
      word.size() > kShown ? printable(word.substr(0, kShown)) + "..." : std::string(word);
  return invalid("--where: character {}, '{}': {}", at, cut, what);
}

Result<Condition> parse_condition(std::string_view text) {
  if (text.size() > kLongest) return invalid("--where: is longer than 64 KiB");
  return Parser(text).whole();
}

}  // namespace stoker::data
