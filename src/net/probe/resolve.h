// Names to addresses with a deadline. getaddrinfo has none and may hang in a name server that does not
// answer, so each name is looked up by a process of its own. For processes with one thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/time.h"

namespace stoker::net {

/// What a name resolved to.
struct Resolved {
  std::string name;
  std::vector<std::string> addresses;  ///< numeric, in the resolver's order, doubles left out
  double seconds = 0;                  ///< until the addresses were there
  double reverse_seconds = 0;          ///< until the first address had a name again, or had none
  std::string error;                   ///< "Name or service not known", "no answer within 5.0 s"; or empty

  friend bool operator==(const Resolved&, const Resolved&) = default;
};

/// One per name, in order. Looks up at most 32 at once. A name without an answer at the deadline has that as
/// its error; a reverse look-up that has not ended then counts until then.
std::vector<Resolved> resolve(std::span<const std::string> names, Deadline deadline);

}  // namespace stoker::net
