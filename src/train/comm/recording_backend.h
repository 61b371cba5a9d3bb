// Forwards every collective to another backend and records it. It wraps the backend under c10d::Reducer, so
// it also records the reducer's collectives. Used by ProcessGroup.
#pragma once

#include <memory>

#include <c10/util/intrusive_ptr.h>

#include "train/comm/collective_recorder.h"

namespace c10d {
class Backend;
}  // namespace c10d

namespace stoker::train {

/// How the end of a collective is noticed.
enum class CompletionCheck {
  future,  ///< its future calls back: on the host
  polled,  ///< a thread asks: on a GPU, where a future is complete when the collective has been launched
};

/// `collective_recorder` is shared with running collectives, which may outlive the group.
c10::intrusive_ptr<c10d::Backend> make_recording_backend(
    c10::intrusive_ptr<c10d::Backend> inner, std::shared_ptr<CollectiveRecorder> collective_recorder,
    CompletionCheck completion);

}  // namespace stoker::train
