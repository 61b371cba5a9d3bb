// "login.cluster:data/photos-s" or "data/photos-s": where a dataset is copied from or to. Values; no state.
#pragma once

#include <optional>
#include <string>

#include "launch/remote/message.h"
#include "stoker/status.h"

namespace stoker::transfer {

struct Location {
  std::string text;                        ///< for messages, as typed but printable
  std::optional<launch::RemoteHost> host;  ///< nullopt: this machine
  std::string path;                        ///< on a host relative to the user's home
  std::string transfer_node;               ///< host name that is connected to instead; "" for none

  /// The same place with a different path, for messages and commands.
  std::string with_path(const std::string& other) const;
};

/// As scp: a host if a colon comes before the first slash. `program`: stoker on the host, "" for the one in
/// PATH. Invalid for a host that ssh would take for an option, and for an empty path.
Result<Location> parse_location(const std::string& text, const std::string& program);

}  // namespace stoker::transfer
