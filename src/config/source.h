// Where configuration text came from, and how a place in it is shown: "job.yaml:7:3" and the line with a
// caret. Used by every part of this room that reports a mistake. Thread-compatible values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::config {

/// A place in a text file: both count from 1, columns in characters.
struct Mark {
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  friend bool operator==(const Mark&, const Mark&) = default;
};

/// The layers a value can come from, weakest first.
enum class Layer { built_in, profile, file, environment, flag };

/// One text that settings are read from: a file, one flag or one environment variable.
class Source {
 public:
  /// `name` is what people know it by: a path, "--set train.epochs", "STOKER_SET_TRAIN_EPOCHS".
  Source(Layer layer, std::string name, std::string text);

  Layer layer() const { return layer_; }
  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }
  /// Files and profiles have lines worth showing; flags and variables do not.
  bool has_lines() const { return layer_ == Layer::file || layer_ == Layer::profile; }

  /// The place of a byte; at the end of the text for one beyond it. Lines end at "\n" as in editors.
  Mark mark(std::size_t offset) const;
  /// "job.yaml:7:3" for a file, else the name.
  std::string where(std::size_t offset) const;
  /// The line of `offset` with its number and a caret below, as two indented lines with a line end before
  /// each; empty if the source has no lines. Long lines are cut around the caret.
  std::string excerpt(std::size_t offset) const;

 private:
  Layer layer_;
  std::string name_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
};

/// Where one value came from: a byte of a source, or nothing for a default.
struct Origin {
  std::shared_ptr<const Source> source;  ///< shared by all values of one text; empty for a default
  std::size_t offset = 0;

  Layer layer() const { return source ? source->layer() : Layer::built_in; }
  /// "job.yaml:7:3", "--set train.epochs", "STOKER_SET_TRAIN_EPOCHS" or "default".
  std::string where() const { return source ? source->where(offset) : "default"; }
};

/// Collects independent mistakes, so that people mend several at once; stops taking more after ten.
class Mistakes {
 public:
  static constexpr std::size_t kMost = 10;

  /// `text` says what is wrong, lower case, without the place.
  void add(const Origin& origin, std::string_view text);
  bool empty() const { return entries_.empty(); }
  /// One more than is told, so that it is known that there are more.
  bool is_full() const { return entries_.size() > kMost; }
  /// Ok, or Invalid with every mistake in the order of the text: "place: what" and the line with a caret.
  Status status() const;

 private:
  struct Entry {
    Origin origin;
    std::string text;
    std::size_t number;  // in the order told
  };
  std::vector<Entry> entries_;
};

}  // namespace stoker::config
