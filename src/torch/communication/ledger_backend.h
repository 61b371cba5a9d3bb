// A backend that passes every collective on to another one and enters it in the ledger. It sits between
// c10d::Reducer and what moves the bytes, so it sees the reducer's own traffic too. Used by ProcessGroup.
#pragma once

#include <memory>

#include <c10/util/intrusive_ptr.h>

#include "torch/communication/ledger.h"

namespace c10d {
class Backend;
}  // namespace c10d

namespace stoker::torch {

/// `ledger` is shared with collectives that are still under way when all else goes.
c10::intrusive_ptr<c10d::Backend> make_ledger_backend(c10::intrusive_ptr<c10d::Backend> inner,
                                                      std::shared_ptr<Ledger> ledger);

}  // namespace stoker::torch
