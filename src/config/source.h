// Source of configuration text and display of positions in it: "job.yaml:7:3" and the line with a caret. Used
// by all code of this room that reports errors. Thread-compatible values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::config {

/// A position in a text file: both count from 1, columns in characters.
struct Mark {
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  friend bool operator==(const Mark&, const Mark&) = default;
};

/// The layers a value can come from, weakest first.
enum class Layer { built_in, profile, file, environment, flag };

/// One text with settings: a file, a flag or an environment variable.
class Source {
 public:
  /// `name` in messages: a path, "--set train.epochs", "STOKER_SET_TRAIN_EPOCHS".
  Source(Layer layer, std::string name, std::string text);

  Layer layer() const { return layer_; }
  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }
  /// Whether messages show lines: for files and profiles only.
  bool has_lines() const { return layer_ == Layer::file || layer_ == Layer::profile; }

  /// The position of a byte, at most the end of the text. Lines end at "\n".
  Mark mark(std::size_t offset) const;
  /// "job.yaml:7:3" for a file, else the name.
  std::string where(std::size_t offset) const;
  /// The line of `offset` with its number, and a caret below it, as two indented lines, each after a line
  /// end. Empty if the source has no lines. Long lines are cut around the caret.
  std::string excerpt(std::size_t offset) const;

 private:
  Layer layer_;
  std::string name_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
};

/// Origin of one value: a byte of a source, or a default.
struct Origin {
  std::shared_ptr<const Source> source;  ///< shared by all values of one text; empty for a default
  std::size_t offset = 0;

  Layer layer() const { return source ? source->layer() : Layer::built_in; }
  /// "job.yaml:7:3", "--set train.epochs", "STOKER_SET_TRAIN_EPOCHS" or "default".
  std::string where() const { return source ? source->where(offset) : "default"; }
};

/// Collects independent errors, so that the user can fix several at once. Stops after ten.
class ErrorList {
 public:
  static constexpr std::size_t kMost = 10;

  /// `text` is the fact in lower case, without the position.
  void add(const Origin& origin, std::string_view text);
  bool empty() const { return entries_.empty(); }
  /// Holds one more than is printed, to know that there are more.
  bool is_full() const { return entries_.size() > kMost; }
  /// Ok, or Invalid with every error in the order of the text: "position: fact" and the line with a caret.
  Status status() const;

 private:
  struct Entry {
    Origin origin;
    std::string text;
    std::size_t number;  // in order of add()
  };
  std::vector<Entry> entries_;
};

}  // namespace stoker::config
