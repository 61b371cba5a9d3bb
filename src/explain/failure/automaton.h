// Finds many fixed words in a text at once, in one pass and at one table look-up per byte (Aho and Corasick's
// automaton). The filter before the rules over logs: lines without any of their words cost nothing more.
// Thread-safe once made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stoker::explain {

class Automaton {
 public:
  /// Of words that are not empty; they are known by their place in
  /// `words`. No word is kept by reference.
  explicit Automaton(std::span<const std::string_view> words);

  /// Where the first occurrence of any word ends, or npos.
  std::size_t find_end(std::string_view text) const;
  /// Adds for each line of `text` that has a word where the first one ends, in order. Several parts of the
  /// text are looked at in turns, since each step waits for the one before it: four times as fast as
  /// find_end.
  void find_lines(std::string_view text, std::vector<std::size_t>& ends) const;
  /// Adds the numbers of all words in `text`, each once, in the order in which they end.
  void find_all(std::string_view text, std::vector<std::uint16_t>& found) const;

 private:
  using State = std::uint32_t;  // where its row begins in next_, the highest bit set where a word ends
  static constexpr State kEnds = 1u << 31;

  struct Stream;
  bool advance(Stream& stream) const;

  State step(State state, char c) const {
    return next_[(state & (kEnds - 1)) + class_of_[static_cast<unsigned char>(c)]];
  }

  std::array<std::uint16_t, 256> class_of_{};  // 0: in no word; else the more often it is in one, the lower
  std::size_t width_ = 1;                      // of a row
  std::vector<State> next_;
  std::vector<std::vector<std::uint16_t>> words_at_;  // by row
};

}  // namespace stoker::explain
