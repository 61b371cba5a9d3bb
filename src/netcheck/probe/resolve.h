// Resolves host names with a deadline. getaddrinfo has none and may hang in a name server, so each name is
// resolved in a separate process. For processes with one thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stoker/time.h"

namespace stoker::netcheck {

/// The result for one name.
struct ResolvedName {
  std::string name;
  std::vector<std::string> addresses;  ///< numeric, in the resolver's order, without duplicates
  double seconds = 0;                  ///< time to resolve
  double reverse_seconds = 0;          ///< time of the reverse lookup, successful or not
  std::string error;                   ///< "Name or service not known", "no answer within 5.0 s"; or empty

  friend bool operator==(const ResolvedName&, const ResolvedName&) = default;
};

/// One result per name, in order. Runs at most 32 lookups concurrently. A name that is unresolved at the
/// deadline has an error; an unfinished reverse lookup counts until the deadline.
std::vector<ResolvedName> resolve(std::span<const std::string> names, Deadline deadline);

}  // namespace stoker::netcheck
