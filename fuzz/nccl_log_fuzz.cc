// Logs with lines of NCCL and of its Inspector, which processes may write into each other: collectives with
// known fields, or rejected lines.
#include <cstdint>
#include <string_view>

#include "profile/nccl/nccl_log.h"
#include "stoker/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::profile;
  NcclLog log;
  CollectiveTable collectives;
  for (const std::string_view line : stoker::split({reinterpret_cast<const char*>(data), size}, '\n'))
    log.add_line(line, collectives);
  std::uint64_t count = 0;
  for (const CollectiveRow& row : collectives.rows()) {
    STOKER_CHECK(row.kind.ranks >= 0 && row.timed <= row.count && row.shortest >= 0 &&
                 !row.kind.operation.empty());
    STOKER_CHECK(row.kind.group.size() <= 70 && row.kind.operation.size() <= 70);
    count += row.count;
  }
  STOKER_CHECK(count + log.rejected() <= log.lines());
  return 0;
}
