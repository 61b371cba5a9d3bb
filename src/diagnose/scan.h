// Scans a log with all rules, block by block: hits and notable lines. Uses bounded memory. Internal to this
// folder. Use each scanner on one thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/exception_message.h"
#include "diagnose/line_signs.h"
#include "diagnose/log_end.h"
#include "diagnose/log_excerpt.h"
#include "diagnose/log_line.h"
#include "diagnose/rule.h"
#include "diagnose/scan_ranks.h"

namespace stoker::diagnose {

/// A line that a rule matched.
struct Hit {
  const FailureRule* rule = nullptr;
  std::uint64_t line = 0;        ///< from 1
  std::uint64_t begin = 0;       ///< the first line of the hit: where its traceback begins
  std::uint64_t overwrites = 0;  ///< number of overwrites with \r before it, as in progress bars
  std::string text;              ///< the line, printable
  std::array<std::string, 4> groups;
  std::string frame;        ///< "train.py:88" of a traceback: the last frame outside of libraries
  std::string outer_frame;  ///< without one: that of the exception that was raised from this one
  int rank = -1;
  std::optional<double> time;
  bool is_logged = false;      ///< its traceback was printed by a logging call, which handles the exception
  bool is_chained = false;     ///< raised while the exception above it was handled
  bool is_in_handler = false;  ///< so, and not raised from it
  LogLevel level = LogLevel::none;  ///< of its line; none below a traceback
  bool is_fallback = false;         ///< the line reports how the program continues
  bool is_retried = false;          ///< its line, or one beside it, reports that the program continued
  bool is_of_thread = false;        ///< it ended a thread beside the main one
};

/// A line with progress of the training, before or soon after a hit, or after the end of an attempt.
struct ProgressLine {
  std::uint64_t line = 0;
  int rank = -1;
  std::optional<ProgressCount> count;
};

/// What a line soon after a hit shows about its process.
enum class AfterError {
  way_around,  ///< "retrying", "skipping it"
  fallback,    ///< "trying the previous one", "using the local copy"
  work,        ///< "restored step 100", "wrote table.csv"
  success,     ///< "training finished"
  failed_end,  ///< "exit code 1"
};

/// Such a line.
struct LineAfter {
  std::uint64_t line = 0;
  int rank = -1;
  AfterError kind = AfterError::work;
};

/// The result of scanning a log.
struct ScanResult {
  std::vector<Hit> hits;             ///< by line
  std::vector<NotableLine> notable;  ///< at most three, by line
  std::uint64_t lines = 0;
  std::uint64_t overwrites = 0;             ///< number of overwrites with \r
  std::optional<int> first_rank;            ///< torchrun's "first observed failure"
  std::uint64_t left_out = 0;               ///< hits that were dropped because of the limit
  std::vector<ProgressLine> progress;       ///< by line; a long log has more than are kept
  std::vector<LineAfter> after;             ///< by line; a long log has more than are kept
  std::vector<std::uint64_t> attempt_ends;  ///< lines: torchrun lost a rank, Slurm requeued the job
  std::uint64_t last_failed_end = 0;        ///< the last line that reports a failed process; 0: none
  std::uint64_t last_giving_up = 0;         ///< the last line with which torchrun gives up; 0: none
  std::vector<TaskExit> task_ends;          ///< by line; the first ones
  RankSurvey survey;
  NotableLine last;  ///< the last line that is not empty
  LogEnd end;
  std::optional<Hit> own_error;  ///< one of the last lines, in which the program reports its failure itself
  bool is_own_verdict = false;   ///< so, without a level, in the last lines
};

class LogScanner {
 public:
  LogScanner();

  /// Scans the next block: whole lines, or a part of an endless one.
  void scan(std::string_view block);
  /// Returns the result; call once.
  ScanResult finish();

 private:
  struct Traceback {
    std::uint64_t begin = 0;
    std::uint64_t lines = 0;
    std::string frame;
    bool is_logged = false;
    bool is_chained = false;
    bool is_in_handler = false;
    bool is_retried = false;
    bool is_of_thread = false;
    std::size_t indent = 0;      // of its first line
    std::string_view below;      // the part of a library whose frames it has: "torch.load"
    std::string library;         // of its last frame; "" in the user's code
    std::string imported;        // by the last line of code, in a library
    std::string hidden;          // a module that a file of the user hides from a library
    bool is_of_forward = false;  // anomaly mode of torch: where the operation was called
    std::uint64_t line = 0;      // of the evidence; 0: the current line
    NotableLine message_above;   // the nearest line above that states a reason
  };
  // An exception whose message continues.
  struct OpenException {
    Hit hit;
    ExceptionMessage message;
    std::uint64_t lines = 0;
  };
  // A dump of Python's faulthandler, until its first frame outside of libraries.
  struct OpenDump {
    Hit hit;
    std::uint64_t lines = 0;
    std::string_view below;           // as in a traceback
    bool has_frames = false;          // of its current thread
    bool is_of_other_thread = false;  // the current lines
    bool is_above_top = false;        // the next frame is where its thread stands
    std::vector<std::string> tops;    // of threads, in the program; "" in a library
  };
  // A report of an exception that Python or its logging handled.
  struct HandledReport {
    std::uint64_t lines = 0;
    bool is_logging = false;  // "--- Logging error ---": until its arguments
    bool has_traceback = false;
  };

  void scan_line(std::string_view raw);
  void scan_segment(std::string_view raw);
  void begin_traceback(std::string_view text, int rank);
  bool follow_traceback(std::string_view text, int rank);
  void remember_forward(int rank);
  bool follow_exception(std::string_view text, int rank);
  void close_exception(std::map<int, OpenException>::iterator open);
  bool follow_dump(std::string_view text, int rank);
  void close_dump(std::map<int, OpenDump>::iterator open);
  bool close_traceback(std::string_view text, int rank, const Traceback& traceback);
  bool match_below(std::string_view text, std::string_view part, int rank, const Traceback& traceback);
  static void note_hidden_module(std::string_view text, Traceback& traceback);
  bool match_nothing(std::string_view text, int rank, Traceback traceback);
  bool match_syntax_error(std::string_view text, int rank, Traceback traceback);
  bool match_message_line(std::map<int, OpenException>::iterator open, std::string_view text, int rank);
  bool follow_handled_report(std::string_view text, int rank);
  bool follows_a_block() const {
    return !tracebacks_.empty() || !handled_.empty() || !exceptions_.empty() || !dumps_.empty() ||
           table_lines_ > 0 || watched_lines_ > 0;
  }
  bool has_open_block() const { return !exceptions_.empty() || !dumps_.empty(); }
  void close_open_blocks();
  void follow_attempts(std::string_view text);
  void remember_progress(std::uint64_t line, std::string_view text, int rank);
  void remember_after_error(std::string_view text, int rank);
  void remember_progress_before(std::uint64_t begin);
  void mark_retried(std::string_view text, int rank);
  void drop_passing_nan();
  LinesAbove lines_above() const { return {block_.substr(0, line_begin_), line_}; }
  void follow_table(std::string_view text);
  bool match(std::string_view text, int rank, const Traceback* traceback);
  void keep(Hit hit);
  void survey_ranks(const Hit& loss);
  void keep_bare_exception(std::uint64_t line, std::string_view text, int rank);
  void take_rank_above(Hit& hit) const;
  void remember_task_end(std::string_view text);
  void name_frame_in_chain(const Hit& outer);
  bool has_only_notable_words() const;
  void remember_notable(std::string_view text);

  std::uint64_t line_ = 1;        // number of the next line
  std::uint64_t overwrites_ = 0;  // number of \r before it
  std::vector<std::uint16_t> found_;
  std::vector<std::size_t> ends_;            // ends of the first keyword of each line in the block
  std::map<int, Traceback> tracebacks_;      // by rank
  std::map<int, std::string> forward_;       // by rank: the last frame of such a traceback
  std::map<int, HandledReport> handled_;     // by rank
  std::map<int, OpenException> exceptions_;  // by rank
  std::map<int, OpenDump> dumps_;            // by rank
  std::string_view block_;                   // the block that is being scanned
  std::size_t line_begin_ = 0;               // its current line
  std::string last_block_;                   // the last one, if an exception or a dump is open at its end
  int table_lines_ = 0;                      // remaining lines of torchrun's table
  int watched_lines_ = 0;                    // remaining lines in which progress is remembered
  std::map<const FailureRule*, std::uint64_t> counts_;
  std::map<const FailureRule*, std::deque<Hit>> latest_;  // hits after the first ones of a rule
  NotableLine unread_;   // the last report of a file that could not be read, while the program continued
  NotableLine nothing_;  // the last report of an empty set
  std::uint64_t retried_line_ = 0;  // the last line that announces an error that is retried; 0: none
  std::uint64_t chained_line_ = 0;  // the last sentence between two exceptions; 0: none
  bool is_raised_from_ = false;     // that sentence: the second one was raised from the first
  LogExcerpt excerpt_;
  ScanResult result_;
};

}  // namespace stoker::diagnose
