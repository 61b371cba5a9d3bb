// Logs may be anything: the scan ends, keeps its places inside them, and what it shows is fit for a terminal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text.h"
#include "explain/failure/judge.h"
#include "explain/failure/scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::explain;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Scan scan;
  // In two blocks, the first of whole lines.
  const std::size_t cut = text.substr(0, size / 2).rfind('\n') + 1;
  scan.take(text.substr(0, cut));
  scan.take(text.substr(cut));
  std::vector<Heard> heard(1);
  heard[0].scanned = scan.finish();
  for (const Hit& hit : heard[0].scanned.hits) {
    if (hit.line == 0 || hit.line > size + 1 || hit.begin > hit.line) std::abort();
    if (hit.text != stoker::printable(hit.text)) std::abort();
  }
  for (const TellingLine& line : heard[0].scanned.telling) {
    if (line.line > size + 1 || line.text != stoker::printable(line.text)) std::abort();
  }
  choose(heard, std::nullopt);
  return 0;
}
