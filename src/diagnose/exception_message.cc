#include "diagnose/exception_message.h"

#include <algorithm>
#include <utility>

#include <re2/re2.h>

#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

// A first line is kept in front of a reason up to this length.
constexpr std::size_t kLongestHead = 100;

re2::StringPiece as_piece(std::string_view text) { return {text.data(), text.size()}; }

// Heads without information.
bool is_empty_head(std::string_view head) {
  static const RE2 kEmpty(
      R"(^(?:Graph execution error:?|in user code:|Exception encountered when calling .*|while (?:scanning|parsing|constructing|reading) .*|)$)");
  return RE2::FullMatch(as_piece(head), kEmpty);
}

bool is_validation(std::string_view head) {
  static const RE2 kValidation(R"(^\d+ validation errors? for )");
  return RE2::PartialMatch(as_piece(head), kValidation);
}

// Lines between the first line and the reason.
bool is_scaffold(std::string_view line) {
  static const RE2 kScaffold(
      R"(^(?:File "|<stack traces unavailable>|in "|in <|Detected at node|Node: |\d+ root error|Stack trace|Original stack trace|\[\[\{|Arguments received by|•|[-=^~*]{3}|For further information|    ))");
  return RE2::PartialMatch(as_piece(line), kScaffold);
}

constexpr std::size_t kLongestReason = 240;

// Whether the next line completes the sentence.
bool is_open(std::string_view reason) {
  return reason.ends_with(';') || reason.ends_with(',') || reason.ends_with(':');
}

// JAX: two trees differ there, in keys that follow.
constexpr std::string_view kTreesDiffer = " at key path";
// Keras: a line with the sizes of each input follows.
constexpr std::string_view kCardinality = "Data cardinality is ambiguous";
// Hugging Face datasets: the columns of a file and of the dataset follow.
constexpr std::string_view kNotCast = "Couldn't cast";
// A list of items follows: "- hour".
bool announces_list(std::string_view head) {
  return head.ends_with("but found") || head.ends_with("but got") ||
         head.starts_with("The feature names should match");
}

constexpr std::string_view kInUserCode = "in user code:";

}  // namespace

bool ExceptionMessage::is_continued(std::string_view first_line) {
  const std::size_t colon = first_line.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view head = trim(first_line.substr(colon + 1));
  return first_line.ends_with(':') || is_empty_head(head) || is_validation(head) ||
         first_line.starts_with("yaml.") || head.ends_with(kTreesDiffer) || head.starts_with(kCardinality) ||
         head == kNotCast || announces_list(head);
}

ExceptionMessage::ExceptionMessage(std::string_view first_line) {
  const std::size_t colon = std::min(first_line.find(':'), first_line.size());
  type_ = first_line.substr(0, colon);
  head_ = trim(first_line.substr(std::min(colon + 1, first_line.size())));
  is_validation_ = is_validation(head_);
  if (is_validation_) (void)RE2::PartialMatch(head_, R"(^(\d{1,4}) )", &fields_);
  is_in_user_code_ = head_ == kInUserCode;
  has_position_ = first_line.starts_with("yaml.");
  if (!has_position_ || is_empty_head(head_)) return;
  reason_ = head_;
  head_.clear();
}

bool ExceptionMessage::add(std::string_view line) {
  const std::string_view text = trim(line);
  if (announces_list(head_)) return add_item(text);
  if (text.empty()) return true;
  if (is_validation_) return add_field(line);
  if (!reason_.empty()) {
    if (has_position_) {
      if (text.starts_with("in \"")) reason_ += format(", {}", text);
      return false;
    }
    reason_ += format(" {}", text);
    return is_open(reason_) && reason_.size() < kLongestReason;
  }
  if (head_ == kNotCast) return add_columns(text);
  if (head_.ends_with(kTreesDiffer)) return add_keys(text);
  if (head_.starts_with(kCardinality)) {
    reason_ = format("{}, {}", std::exchange(head_, ""), text);
    return false;
  }
  static const RE2 kException(R"(^((?:\w+\.)*\w*(?:Error|Exception)): (.+)$)");
  if (is_in_user_code_ && RE2::FullMatch(as_piece(text), kException, &type_, &reason_)) return false;
  if (is_scaffold(text) || line.starts_with("    ")) return true;
  reason_ = text;
  return has_position_ || is_open(reason_);
}

// A field that pydantic rejects, and below it the reason, which is indented.
bool ExceptionMessage::add_field(std::string_view line) {
  std::string_view text = trim(line);
  if (is_scaffold(text)) return true;
  if (!line.starts_with(' ')) return std::exchange(place_, text).empty();
  // Of several fields, the names matter more than the details.
  const bool is_one_of_several = fields_ > 1 || !reason_.empty();
  if (is_one_of_several) text = text.substr(0, text.find(" [type="));
  const std::string_view gap = reason_.empty() ? "" : "; ";
  reason_ += place_.empty() ? format("{}{}", gap, text) : format("{}{}: {}", gap, place_, text);
  place_.clear();
  return --fields_ > 0 && reason_.size() < kLongestReason;
}

// The names of the columns of a file, one a line; "to"; the columns in the dataset; and the reason.
bool ExceptionMessage::add_columns(std::string_view text) {
  static const RE2 kColumn(R"(^([\w .-]+): \w)");
  static const RE2 kFeature(R"('([^']+)': (?:Value|List|Sequence|ClassLabel|Image|Audio|LargeList|\{))");
  std::string name;
  if (text.starts_with("because")) {
    reason_ = format("{} to {} {}", std::exchange(columns_, ""), std::exchange(keys_, ""), text);
    return false;
  }
  if (text == "to" || text.starts_with("--")) {
    is_above_keys_ = true;
  } else if (!is_above_keys_ && RE2::PartialMatch(as_piece(text), kColumn, &name)) {
    columns_ += format("{}{}", columns_.empty() ? "" : ", ", name);
  } else if (text.starts_with("{")) {
    re2::StringPiece rest = as_piece(text);
    while (RE2::FindAndConsume(&rest, kFeature, &name))
      keys_ += format("{}{}", keys_.empty() ? "" : ", ", name);
  }
  return true;
}

// Items below a line that announces them, and below their titles: "Feature names unseen at fit time:".
bool ExceptionMessage::add_item(std::string_view text) {
  const bool is_item = text.starts_with("- ");
  const bool is_title = text.ends_with(':') || text.starts_with("Feature names");
  if ((!is_item && !is_title) || reason_.size() > kLongestReason) return false;
  const std::string_view gap = reason_.empty() ? "" : is_title ? "; " : reason_.ends_with(':') ? " " : ", ";
  reason_ += format("{}{}", gap, is_item ? text.substr(2) : text);
  return true;
}

// Lines about two trees that differ: the keys of each follow a line that announces them.
bool ExceptionMessage::add_keys(std::string_view text) {
  const bool is_announced =
      std::exchange(is_above_keys_, text.ends_with("metadata") || text.ends_with("child keys"));
  if (!is_announced) return true;
  if (keys_.empty()) {
    keys_ = text;
    return true;
  }
  reason_ = format("{} but {}", keys_, text);
  return false;
}

std::string ExceptionMessage::text() const {
  if (reason_.empty()) return head_.empty() ? type_ : format("{}: {}", type_, head_);
  if (is_empty_head(head_) || (head_.size() > kLongestHead && !is_validation_ && !announces_list(head_)))
    return format("{}: {}", type_, reason_);
  std::string_view head = head_;
  while (head.ends_with(':') || head.ends_with('.')) head.remove_suffix(1);
  return format("{}: {}: {}", type_, head, reason_);
}

}  // namespace stoker::diagnose
