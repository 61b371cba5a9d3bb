#include "train/trainer/setup/rendezvous_setup.h"

#include <chrono>

#include "record/run_folder.h"

namespace stoker::train {

namespace {

std::chrono::milliseconds in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

}  // namespace

RendezvousOptions rendezvous_options(const RankEnvironment& environment, const job::Timeouts& timeouts) {
  RendezvousOptions rendezvous;
  rendezvous.rank = environment.rank;
  rendezvous.world_size = environment.world_size;
  rendezvous.address = environment.address;
  rendezvous.port = environment.port;
  rendezvous.connect_within = in_ms(timeouts.start);
  rendezvous.call_timeout = in_ms(timeouts.communication);
  // Under `stoker run` the supervisor reports first: it knows all ranks.
  rendezvous.stopped_timeout = 2 * in_ms(timeouts.stopped);
  if (!environment.attempt.empty()) {
    // The folder already contains the attempt's number.
    rendezvous.flight = record::Attempt(environment.attempt, 0).flight(environment.rank.value);
  }
  return rendezvous;
}

RendezvousOptions rendezvous_options(const RankEnvironment& environment, const job::Job& job) {
  RendezvousOptions rendezvous = rendezvous_options(environment, job.timeouts);
  rendezvous.transport = job.train->backend;
  if (!job.record.metrics && job.record.trace == 0) rendezvous.flight.clear();
  return rendezvous;
}

}  // namespace stoker::train
