// Scalars of a TensorBoard event file (events.out.tfevents.*), read as it grows. Other summaries are skipped
// without being kept. One thread; bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "record/points/points.h"
#include "stoker/status.h"

namespace stoker::observe {

/// Receives a point; its name is valid during the call.
using PointSink = std::function<void(const record::PointLine& point)>;

class EventFileReader {
 public:
  /// Takes the next bytes of the file. Corrupt for a damaged record; the reader then ignores all further
  /// bytes.
  Status feed(std::string_view bytes, const PointSink& sink);

 private:
  /// False if the buffer ends within the record.
  Result<bool> read_record(const PointSink& sink);

  std::string pending_;
  std::uint64_t skipped_ = 0;  ///< bytes of a large record that are still to come
  std::uint64_t offset_ = 0;   ///< of `pending_` in the file
  bool is_damaged_ = false;
};

}  // namespace stoker::observe
