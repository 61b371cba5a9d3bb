// Production checks of communication. Internal to this folder.
#pragma once

#include "preflight/production/history.h"
#include "preflight/production/production.h"

namespace stoker::preflight {

/// Whether all nodes of the job completed an all-reduce with `stoker hello`.
ProductionPoint all_reduced(const ProductionFacts& facts);
/// Whether NCCL_DEBUG is off now and was on in a test.
ProductionPoint nccl_quiet(const ProductionFacts& facts);
/// Whether the job sets the network interface of the ranks.
ProductionPoint interface_chosen(const ProductionFacts& facts);

}  // namespace stoker::preflight
