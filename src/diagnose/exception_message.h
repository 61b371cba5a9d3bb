// The message of an exception over several lines. The first line often only announces the reason, for example
// "Graph execution error:". Internal to this folder. Use each object on one thread.
#pragma once

#include <string>
#include <string_view>

namespace stoker::diagnose {

class ExceptionMessage {
 public:
  /// Whether later lines of the exception add to its first line, "ValueError: text".
  static bool is_continued(std::string_view first_line);

  explicit ExceptionMessage(std::string_view first_line);

  /// Adds the next line. False if the message needs no further line.
  bool add(std::string_view line);
  /// Whether a line has the reason.
  bool has_reason() const { return !reason_.empty(); }
  /// Whether it lists frames of the user's code, as AutoGraph's exceptions do.
  bool is_in_user_code() const { return is_in_user_code_; }
  /// "ValueError: the reason", or the first line without one.
  std::string text() const;

 private:
  bool add_keys(std::string_view text);
  bool add_columns(std::string_view text);
  bool add_item(std::string_view text);
  bool add_field(std::string_view line);

  std::string type_;
  std::string head_;    // the message of the first line
  std::string place_;   // the field that pydantic rejects
  int fields_ = 0;      // number of fields that it rejects and that have no reason yet
  std::string reason_;  // the line with the reason
  bool is_validation_ = false;
  bool is_in_user_code_ = false;
  bool is_above_keys_ = false;  // the line announces the keys of one of two trees
  std::string keys_;            // of the first one, or the columns of a dataset
  std::string columns_;         // of a file that differs from its dataset
  bool has_position_ = false;   // YAML: the position follows the reason
};

}  // namespace stoker::diagnose
