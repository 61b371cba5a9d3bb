#include "diagnose/automaton.h"

#include <algorithm>
#include <cstring>

#include "stoker/status.h"

namespace stoker::diagnose {
namespace {

constexpr std::uint32_t kNone = ~0u;

// Numbers the bytes of all words from 1 by descending frequency, so that frequent bytes share a few cache
// lines of each row. Returns the number of classes, including 0.
std::size_t number_classes(std::span<const std::string_view> words,
                           std::array<std::uint16_t, 256>& class_of) {
  std::array<std::size_t, 256> counts{};
  std::vector<std::size_t> bytes;
  for (const std::string_view word : words) {
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      if (counts[byte]++ == 0) bytes.push_back(byte);
    }
  }
  std::stable_sort(bytes.begin(), bytes.end(),
                   [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
  for (std::size_t i = 0; i < bytes.size(); ++i) class_of[bytes[i]] = static_cast<std::uint16_t>(i + 1);
  return bytes.size() + 1;
}

}  // namespace

Automaton::Automaton(std::span<const std::string_view> words) {
  // An odd width spreads the frequently used entries over the cache.
  width_ = number_classes(words, class_of_) | 1;
  const std::size_t width = width_;
  // A trie of the words.
  std::vector<std::uint32_t> tree(width, kNone);
  words_at_.resize(1);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::size_t row = 0;
    for (const char c : words[i]) {
      const std::size_t at = row * width + class_of_[static_cast<unsigned char>(c)];
      if (tree[at] == kNone) {
        tree[at] = static_cast<std::uint32_t>(words_at_.size());
        words_at_.emplace_back();
        tree.resize(tree.size() + width, kNone);
      }
      row = tree[at];
    }
    words_at_[row].push_back(static_cast<std::uint16_t>(i));
  }
  STOKER_CHECK(tree.size() < kEnds);
  // Breadth first: each row takes missing transitions from the row of its longest suffix.
  std::vector<std::uint32_t> suffix(words_at_.size(), 0);
  std::vector<std::uint32_t> order{0};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t row = order[i];
    for (std::size_t c = 0; c < width; ++c) {
      std::uint32_t& next = tree[row * width + c];
      const std::uint32_t fallback = row == 0 ? 0 : tree[suffix[row] * width + c];
      if (next == kNone) {
        next = fallback;
        continue;
      }
      order.push_back(next);
      suffix[next] = fallback;
      const auto& shorter = words_at_[fallback];
      words_at_[next].insert(words_at_[next].end(), shorter.begin(), shorter.end());
    }
  }
  next_.resize(tree.size());
  std::transform(tree.begin(), tree.end(), next_.begin(), [&](std::uint32_t row) {
    return static_cast<State>(row * width) | (words_at_[row].empty() ? 0 : kEnds);
  });
}

std::size_t Automaton::find_end(std::string_view text) const {
  State state = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    state = step(state, text[i]);
    if ((state & kEnds) != 0) return i + 1;
  }
  return std::string_view::npos;
}

// A range of whole lines.
struct Automaton::Stream {
  const char* at;
  const char* end;
  State state = 0;
  std::vector<const char*> hits = {};

  void skip_line() {
    const void* next = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    at = next == nullptr ? end : static_cast<const char*>(next) + 1;
    state = 0;
  }
};

// Consumes one byte. False at the end of the range.
bool Automaton::advance(Stream& stream) const {
  if (stream.at == stream.end) return false;
  stream.state = step(stream.state, *stream.at++);
  if ((stream.state & kEnds) != 0) {
    stream.hits.push_back(stream.at);
    stream.skip_line();
  }
  return true;
}

void Automaton::find_lines(std::string_view text, std::vector<std::size_t>& ends) const {
  std::array<Stream, 4> streams{};
  const char* const begin = text.data();
  const char* at = begin;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::size_t wanted = text.size() / streams.size() * (i + 1);
    const std::size_t line = i + 1 == streams.size() ? text.size() : text.rfind('\n', wanted) + 1;
    const char* const end = std::max(at, begin + line);
    streams[i] = {.at = at, .end = end};
    at = end;
  }
  auto& [a, b, c, d] = streams;
  const State* const next = next_.data();
  const auto class_of = [&](const Stream& stream, std::ptrdiff_t i) {
    return class_of_[static_cast<unsigned char>(stream.at[i])];
  };
  for (;;) {
    const std::ptrdiff_t count =
        std::min(std::min(a.end - a.at, b.end - b.at), std::min(c.end - c.at, d.end - d.at));
    if (count == 0) break;
    State sa = a.state, sb = b.state, sc = c.state, sd = d.state;
    std::ptrdiff_t i = 0;
    while (i < count && ((sa | sb | sc | sd) & kEnds) == 0) {
      sa = next[sa + class_of(a, i)];
      sb = next[sb + class_of(b, i)];
      sc = next[sc + class_of(c, i)];
      sd = next[sd + class_of(d, i)];
      ++i;
    }
    const std::array states = {sa, sb, sc, sd};
    for (std::size_t k = 0; k < streams.size(); ++k) {
      streams[k].at += i;
      streams[k].state = states[k];
      if ((states[k] & kEnds) == 0) continue;
      streams[k].hits.push_back(streams[k].at);
      streams[k].skip_line();
    }
  }
  for (Stream& stream : streams) {
    while (advance(stream)) {
    }
    for (const char* hit : stream.hits) ends.push_back(static_cast<std::size_t>(hit - begin));
  }
}

void Automaton::find_all(std::string_view text, std::vector<std::uint16_t>& found) const {
  State state = 0;
  for (const char c : text) {
    state = step(state, c);
    if ((state & kEnds) == 0) continue;
    for (const std::uint16_t word : words_at_[(state & (kEnds - 1)) / width_]) {
      if (std::find(found.begin(), found.end(), word) == found.end()) found.push_back(word);
    }
  }
}

}  // namespace stoker::diagnose
