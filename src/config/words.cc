#include "config/words.h"

#include <utility>

#include "base/text.h"

namespace stoker::config {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kShellOnly = "|&;<>()`";

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> split() {
    while (at_ < text_.size()) RETURN_IF_ERROR(step());
    finish_word();
    return std::move(words_);
  }

 private:
  Status step() {
    const char c = text_[at_];
    if (kBlanks.find(c) != std::string_view::npos) {
      finish_word();
      ++at_;
      return {};
    }
    in_word_ = true;
    switch (c) {
      case '\'':
        return single_quoted();
      case '"':
        return double_quoted();
      case '\\':
        if (at_ + 1 == text_.size()) return invalid("a backslash at the end quotes nothing");
        word_ += text_[at_ + 1];
        at_ += 2;
        return {};
      case '$':
        return dollar();
      default:
        if (kShellOnly.find(c) != std::string_view::npos) {
          return invalid("'{}' needs a shell: write {{shell: \"...\"}}, or quote it", c);
        }
        word_ += c;
        ++at_;
        return {};
    }
  }

  Status single_quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return invalid("a ' is never closed");
    word_ += text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return {};
  }

  Status double_quoted() {
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return {};
      }
      const bool is_escape = c == '\\' && at_ + 1 < text_.size() &&
                             std::string_view("\"\\$`").find(text_[at_ + 1]) != std::string_view::npos;
      if (is_escape) ++at_;
      word_ += text_[at_];
    }
    return invalid("a \" is never closed");
  }

  // `${name}` is a reference and `$${` its escape, kept for later; `$NAME` and `$(...)` would need a shell.
  Status dollar() {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("${") || rest.starts_with("$${")) {
      const std::size_t end = std::min(rest.find('}'), rest.size() - 1) + 1;
      word_ += rest.substr(0, end);
      at_ += end;
      return {};
    }
    const bool expands = rest.size() > 1 && (rest[1] == '(' || rest[1] == '_' ||
                                             std::isalnum(static_cast<unsigned char>(rest[1])));
    if (expands)
      return invalid("'{}' needs a shell: write {{shell: \"...\"}}, or quote it",
                     rest.substr(0, rest.find_first_of(kBlanks)));
    word_ += '$';
    ++at_;
    return {};
  }

  void finish_word() {
    if (in_word_) words_.push_back(std::exchange(word_, {}));
    in_word_ = false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;
  std::string word_;
  bool in_word_ = false;
};

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) { return Splitter(text).split(); }

std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += shell_quote(word);
  }
  return text;
}

}  // namespace stoker::config
