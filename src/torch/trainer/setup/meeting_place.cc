#include "torch/trainer/setup/meeting_place.h"

#include <chrono>

#include "record/run_folder.h"

namespace stoker::torch {

namespace {

std::chrono::milliseconds in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

Transport transport_of(job::Backend backend) {
  switch (backend) {
    case job::Backend::shm:
      return Transport::shared_memory;
    case job::Backend::gloo:
      return Transport::gloo;
    case job::Backend::automatic:
      break;
  }
  return Transport::automatic;
}

}  // namespace

Rendezvous rendezvous(const RankEnvironment& environment, const job::Timeouts& timeouts) {
  Rendezvous meeting;
  meeting.rank = environment.rank;
  meeting.world_size = environment.world_size;
  meeting.address = environment.address;
  meeting.port = environment.port;
  meeting.connect_within = in_ms(timeouts.start);
  meeting.answer_within = in_ms(timeouts.communication);
  // Where `stoker run` watches the ranks it speaks first: it knows all of them.
  meeting.stopped_within = 2 * in_ms(timeouts.stopped);
  if (!environment.attempt.empty()) {
    // The number is in the folder already.
    meeting.flight = record::Attempt(environment.attempt, 0).flight(environment.rank.value);
  }
  return meeting;
}

Rendezvous rendezvous(const RankEnvironment& environment, const job::Job& job) {
  Rendezvous meeting = rendezvous(environment, job.timeouts);
  meeting.transport = transport_of(job.train->backend);
  if (!job.record.metrics && job.record.trace == 0) meeting.flight.clear();
  return meeting;
}

}  // namespace stoker::torch
