#include "config/shell_words.h"

#include <algorithm>
#include <utility>

#include "config/schema.h"
#include "stoker/text.h"

namespace stoker::config {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kShellOnly = "|&;<>()`";
constexpr std::size_t kLongestShown = 60;

enum class SplitMode { list, command };

// Whether a shell would expand a home folder. Hydra's `~optimizer` is not one.
bool begins_with_home(std::string_view word) {
  if (!word.starts_with('~')) return false;
  const std::size_t slash = word.find('/');
  const std::string_view user = word.substr(1, slash == std::string_view::npos ? slash : slash - 1);
  return user.empty() || (slash != std::string_view::npos && is_name(user));
}

class Splitter {
 public:
  Splitter(std::string_view text, SplitMode mode) : text_(text), mode_(mode) {}

  Result<std::vector<std::string>> split() {
    while (at_ < text_.size()) STOKER_RETURN_IF_ERROR(step());
    STOKER_RETURN_IF_ERROR(finish_word());
    return std::move(words_);
  }

 private:
  Status step() {
    const char c = text_[at_];
    if (kBlanks.find(c) != std::string_view::npos) {
      STOKER_RETURN_IF_ERROR(finish_word());
      has_line_ended_ = has_line_ended_ || (c == '\n' && !words_.empty());
      ++at_;
      return {};
    }
    if (text_.substr(at_).starts_with("\\\n")) {  // line continuation
      at_ += 2;
      return {};
    }
    if (has_line_ended_ && mode_ == SplitMode::command) return next_line();
    if (!in_word_) begin_ = at_;
    in_word_ = true;
    switch (c) {
      case '\'':
        return single_quoted();
      case '"':
        return double_quoted();
      case '\\':
        if (at_ + 1 == text_.size()) return invalid("a backslash at the end escapes nothing");
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
    if (end == std::string_view::npos) return invalid("a ' is not closed");
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
    return invalid("a \" is not closed");
  }

  // `${name}` is a reference and `$${` its escape: both are kept. `$NAME` and `$(...)` need a shell.
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
    if (mode_ == SplitMode::command) STOKER_RETURN_IF_ERROR(check_word());
    words_.push_back(std::exchange(word_, {}));
    in_word_ = has_pattern_ = has_tilde_ = false;
    return {};
  }

  // Words that a shell would expand. A shell finds no file for `--glob=*.csv` and keeps it.
  Status check_word() const {
    const bool is_pattern = has_pattern_ && word_.find('=') == std::string::npos;
    if (!is_pattern && !(has_tilde_ && begins_with_home(word_))) return {};
    return invalid("'{}' needs a shell: write {{shell: \"...\"}}, or quote it",
                   printable(text_.substr(begin_, std::min(at_ - begin_, kLongestShown))));
  }

  std::string_view text_;
  SplitMode mode_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  // of the word
  std::vector<std::string> words_;
  std::string word_;
  bool in_word_ = false;
  bool has_pattern_ = false;  // an unquoted * or ?
  bool has_tilde_ = false;    // an unquoted ~ at its begin
  bool has_line_ended_ = false;
};

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  return Splitter(text, SplitMode::list).split();
}

Result<std::vector<std::string>> split_command(std::string_view text) {
  return Splitter(text, SplitMode::command).split();
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
