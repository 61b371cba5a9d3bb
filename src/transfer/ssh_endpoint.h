// A folder on a host, over one ssh connection with the user's own settings. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/pacer.h"
#include "launch/remote/message.h"
#include "stoker/status.h"
#include "transfer/endpoint.h"

namespace stoker::transfer {

/// How to connect.
struct SshTarget {
  launch::RemoteHost host;
  std::string transfer_node;  ///< connect to this host name, with the settings of `host`; "" for none
  bool may_ask = true;        ///< ssh may ask for a password on the terminal
  Pacer* pacer = nullptr;     ///< limits both directions; outlives the endpoint
};

/// Connects. Unavailable with ssh's message when the connection fails, or when nothing on the host computes
/// SHA-256; Cancelled when `should_stop`.
Result<std::unique_ptr<Endpoint>> ssh_endpoint(const SshTarget& target, std::function<bool()> should_stop);

}  // namespace stoker::transfer
