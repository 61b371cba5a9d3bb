// Holds a log against all rules, block by block: what was found, and the lines that tell most where nothing
// was. Memory is bounded whatever the log is. Internal to this room. A scan belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/failure/rule.h"

namespace stoker::explain {

/// A line that a rule matched.
struct Hit {
  const FailureRule* rule = nullptr;
  std::uint64_t line = 0;   ///< from 1
  std::uint64_t begin = 0;  ///< the first line that belongs to it: where its traceback begins
  std::uint64_t drawn = 0;  ///< how often lines before it were drawn over, as progress bars are
  std::string text;         ///< the line, fit for a terminal
  std::array<std::string, 4> groups;
  std::string frame;  ///< "train.py:88" of a traceback: the last place outside of libraries
  int rank = -1;
  std::optional<double> time;
};

struct TellingLine {
  std::uint64_t line = 0;
  std::string text;
};

/// What a log holds.
struct Scanned {
  std::vector<Hit> hits;             ///< by line
  std::vector<TellingLine> telling;  ///< at most three, by line
  std::uint64_t lines = 0;
  std::uint64_t drawn = 0;        ///< how often a line was drawn over
  std::optional<int> first_rank;  ///< torchrun's "first observed failure"
  std::uint64_t left_out = 0;     ///< lines that rules matched beyond what is kept
};

class Scan {
 public:
  Scan();

  /// The next block of the log: whole lines, or a part of an endless one.
  void take(std::string_view block);
  /// What was found; the scan is used up.
  Scanned finish();

 private:
  struct Traceback {
    std::uint64_t begin = 0;
    std::uint64_t lines = 0;
    std::string frame;
  };

  void take_line(std::string_view raw);
  void take_segment(std::string_view raw);
  bool follow_traceback(std::string_view text, int rank);
  void follow_table(std::string_view text);
  bool match(std::string_view text, int rank, const Traceback* traceback);
  void keep(Hit hit);
  void remember_end(std::string_view block);
  bool is_only_telling() const;
  void remember_telling(std::string_view text);

  std::uint64_t line_ = 1;   // of what is taken next
  std::uint64_t drawn_ = 0;  // \r before it
  std::vector<std::uint16_t> found_;
  std::vector<std::size_t> ends_;        // of the first words of lines of the block
  std::map<int, Traceback> tracebacks_;  // by rank
  int table_lines_ = 0;                  // of torchrun's table still to be looked at
  std::map<const FailureRule*, std::uint64_t> counts_;
  std::map<const FailureRule*, std::deque<Hit>> latest_;  // beyond the first ones of a rule
  std::deque<TellingLine> telling_;
  std::deque<TellingLine> last_;  // the ends of blocks
  Scanned scanned_;
};

}  // namespace stoker::explain
