#include "config/words.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "config/schema.h"

namespace stoker::config {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kShellOnly = "|&;<>()`";
constexpr std::size_t kLongestShown = 60;

enum class Meaning { list, command };

// Whether a shell would put a home folder in its place. Hydra's `~optimizer` is no such word.
bool begins_with_home(std::string_view word) {
  if (!word.starts_with('~')) return false;
  const std::size_t slash = word.find('/');
  const std::string_view user = word.substr(1, slash == std::string_view::npos ? slash : slash - 1);
  return user.empty() || (slash != std::string_view::npos && is_name(user));
}

class Splitter {
 public:
  Splitter(std::string_view text, Meaning meaning) : text_(text), meaning_(meaning) {}

  Result<std::vector<std::string>> split() {
    while (at_ < text_.size()) RETURN_IF_ERROR(step());
    RETURN_IF_ERROR(finish_word());
    return std::move(words_);
  }

 private:
  Status step() {
    const char c = text_[at_];
    if (kBlanks.find(c) != std::string_view::npos) {
      RETURN_IF_ERROR(finish_word());
      has_line_ended_ = has_line_ended_ || (c == '\n' && !words_.empty());
      ++at_;
      return {};
    }
    if (text_.substr(at_).starts_with("\\\n")) {  // goes on in the next line
      at_ += 2;
      return {};
    }
    if (has_line_ended_ && meaning_ == Meaning::command) return next_line();
    if (!in_word_) begin_ = at_;
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
        return plain(c);
    }
  }

  Status plain(char c) {
    if (kShellOnly.find(c) != std::string_view::npos) {
      return invalid("'{}' needs a shell: write {{shell: \"...\"}}, or quote it", c);
    }
    has_pattern_ = has_pattern_ || c == '*' || c == '?';
    has_tilde_ = has_tilde_ || (c == '~' && at_ == begin_);
    word_ += c;
    ++at_;
    return {};
  }

  Status next_line() const {
    const std::string_view rest = text_.substr(at_);
    return invalid("the line '{}' needs a shell: write {{shell: \"...\"}}, or end the one before with '\\'",
                   printable(trim(rest.substr(0, std::min(rest.find('\n'), kLongestShown)))));
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
      if (text_.substr(at_).starts_with("\\\n")) {
        ++at_;
        continue;
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

  Status finish_word() {
    if (!in_word_) return {};
    if (meaning_ == Meaning::command) RETURN_IF_ERROR(check_word());
    words_.push_back(std::exchange(word_, {}));
    in_word_ = has_pattern_ = has_tilde_ = false;
    return {};
  }

  // What a shell would put other words for. It finds no file for `--glob=*.csv` and leaves it as it is.
  Status check_word() const {
    const bool is_pattern = has_pattern_ && word_.find('=') == std::string::npos;
    if (!is_pattern && !(has_tilde_ && begins_with_home(word_))) return {};
    return invalid("'{}' needs a shell: write {{shell: \"...\"}}, or quote it",
                   printable(text_.substr(begin_, std::min(at_ - begin_, kLongestShown))));
  }

  std::string_view text_;
  Meaning meaning_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  // of the word
  std::vector<std::string> words_;
  std::string word_;
  bool in_word_ = false;
  bool has_pattern_ = false;  // a * or ? that nothing quotes
  bool has_tilde_ = false;    // such a ~ at its begin
  bool has_line_ended_ = false;
};

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  return Splitter(text, Meaning::list).split();
}

Result<std::vector<std::string>> split_command(std::string_view text) {
  return Splitter(text, Meaning::command).split();
}

std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += shell_quote(word);
  }
  return text;
}

}  // namespace stoker::config
