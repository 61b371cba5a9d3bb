// The state of an interrupted pack, as a disk may have damaged it: the plan and the facts of a shard are
// rejected, or survive a round trip. Also behind a valid checksum, which a fuzzer would not find.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "pack/dataset_plan.h"
#include "pack/shard/shard_writer.h"

namespace {

using stoker::pack::DatasetPlan;
using stoker::pack::ShardFacts;

void read_both(std::string_view text) {
  if (const auto plan = DatasetPlan::decode(text, "fuzz"); plan.ok()) {
    const std::string written = plan->encode();
    const auto again = DatasetPlan::decode(written, "fuzz");
    STOKER_CHECK(again.ok() && again->encode() == written);
  }
  if (const auto facts = ShardFacts::decode(text, "plan", "fuzz"); facts.ok()) {
    const std::string written = facts->encode("plan");
    const auto again = ShardFacts::decode(written, "plan", "fuzz");
    STOKER_CHECK(again.ok() && again->encode("plan") == written && again->section == facts->section);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_both(text);
  read_both(stoker::format("{:08x}\n{}", stoker::crc32c(text), text));
  return 0;
}
