// An endpoint on this machine. Also the far side of a transfer, in the stoker of a host.
#pragma once

#include <functional>
#include <memory>

#include "base/pacer.h"
#include "transfer/endpoint.h"

namespace stoker::transfer {

/// A folder on this machine. `pacer`: limits put() until `should_stop`; may be null.
std::unique_ptr<Endpoint> folder_endpoint(Pacer* pacer = nullptr, std::function<bool()> should_stop = {});

}  // namespace stoker::transfer
