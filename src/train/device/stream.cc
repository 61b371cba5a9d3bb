#include "train/device/stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace stoker::train {

using c10::impl::VirtualGuardImpl;

c10::Stream new_stream(at::Device device) {
  const VirtualGuardImpl guard(device.type());
  return device.is_cpu() ? guard.getStream(device) : guard.getStreamFromGlobalPool(device);
}

StreamScope::StreamScope(c10::Stream stream)
    : before_(VirtualGuardImpl(stream.device_type()).getStream(stream.device())) {
  const VirtualGuardImpl guard(stream.device_type());
  guard.setDevice(stream.device());
  guard.exchangeStream(stream);
}

StreamScope::~StreamScope() { VirtualGuardImpl(before_.device_type()).exchangeStream(before_); }

StreamPoint::StreamPoint(at::Device device, Timing timing) : device_(device) {
  if (device.is_cpu()) return;
  event_.emplace(device.type(),
                 timing == Timing::on ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT);
}

void StreamPoint::record() {
  if (!event_) return;
  event_->record(VirtualGuardImpl(device_.type()).getStream(device_));
  is_recorded_ = true;
}

void StreamPoint::block_current_stream() const {
  if (event_ && is_recorded_) event_->block(VirtualGuardImpl(device_.type()).getStream(device_));
}

bool StreamPoint::is_reached() const { return !event_ || !is_recorded_ || event_->query(); }

void StreamPoint::wait() const {
  if (event_ && is_recorded_) event_->synchronize();
}

double StreamPoint::seconds_since(const StreamPoint& earlier) const {
  return event_ && earlier.event_ ? earlier.event_->elapsedTime(*event_) / 1e3 : 0;
}

}  // namespace stoker::train
