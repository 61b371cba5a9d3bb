// Counters of the kernel and of drivers, as text files below /proc and /sys, and their rates. A counter may
// be absent, unreadable, wrapped, reset or nonsense: then there is no value. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/text.h"

namespace stoker::observe {

using Counter = std::optional<std::uint64_t>;

/// The roots of the trees to read; tests pass recorded ones.
struct NodeRoots {
  Path proc = "/proc";
  Path sys = "/sys";

  Path cgroups() const { return sys / "fs/cgroup"; }
};

/// The number that `text` starts with: of "12 kB" 12. nullopt for other text, negative and huge numbers.
Counter leading_number(std::string_view text);
/// The same for the content of a file; nullopt if it cannot be read.
Counter read_counter(const Path& file);
/// The number after "key:" or "key " at the start of a line; nullopt without one.
Counter value_after(std::string_view text, std::string_view key);
/// The words of a line; blanks and tabs separate them, any number at once.
std::vector<std::string_view> words_of(std::string_view line);

/// The names in a folder, sorted; empty if it cannot be read.
std::vector<std::string> names_in(const Path& folder);

/// The sum; unset only if both are.
Counter sum_of(Counter a, Counter b);
/// Bytes per second, or events per second. nullopt without both values, for a counter that decreased (wrapped
/// or reset) and for a rate above 1e14, which no machine reaches.
std::optional<double> rate_between(Counter before, Counter now, double seconds);

}  // namespace stoker::observe
