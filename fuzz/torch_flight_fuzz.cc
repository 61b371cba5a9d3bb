// Dumps of torch's flight recorder, which a crash may cut off and anybody may write: process groups with
// ordered collectives, or an error that names the file. Nothing in a pickle is run.
#include <cstdint>
#include <span>
#include <vector>

#include "record/trace/pickle.h"
#include "record/trace/torch_flight.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using stoker::record::Pickle;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto pickle = Pickle::parse("fuzz", bytes);
  if (pickle.ok()) {
    // Whatever a value refers to exists.
    if (const auto* list = std::get_if<Pickle::List>(&pickle->at(pickle->root()))) {
      for (const Pickle::Index item : list->items) (void)pickle->at(item);
    }
    (void)pickle->find(pickle->root(), "entries");
  }
  const auto flight = stoker::record::parse_torch_flight("fuzz", bytes, 0);
  if (!flight.ok()) {
    STOKER_CHECK(flight.status().code() == stoker::Code::corrupt &&
                 flight.status().message().starts_with("fuzz: "));
    return 0;
  }
  STOKER_CHECK(pickle.ok());
  for (const auto& group : flight->groups) {
    const auto& entries = group.flight.entries;
    for (std::size_t i = 1; i < entries.size(); ++i) STOKER_CHECK(entries[i - 1].number <= entries[i].number);
  }
  // A copy of a rank differs from it in nothing but its number.
  std::vector<stoker::record::TorchFlight> both = {*flight, *flight};
  both[1].rank = 1;
  for (const std::string& line : stoker::record::describe_torch_desync(both))
    STOKER_CHECK(line.find(" has not reached ") == std::string::npos);
  return 0;
}
