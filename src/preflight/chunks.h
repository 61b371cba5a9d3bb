// Checks whether the chunk cache is large enough for the samples. Internal to this folder.
#pragma once

#include "dataset/manifest.h"
#include "job/job.h"
#include "preflight/notes.h"

namespace stoker::preflight {

/// Whether the chunks of one sample of the training data fit into train.chunk_cache.
void check_chunks(const job::Job& job, const dataset::Manifest& manifest, Notes& notes);

}  // namespace stoker::preflight
