// Logs may be any text: the scan ends, its positions stay inside the log, and its excerpts are printable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "diagnose/root_cause.h"
#include "diagnose/scan.h"
#include "stoker/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::diagnose;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  LogScanner scanner;
  // In two blocks; the first has whole lines.
  const std::size_t cut = text.substr(0, size / 2).rfind('\n') + 1;
  scanner.scan(text.substr(0, cut));
  scanner.scan(text.substr(cut));
  std::vector<LogScan> scans(1);
  scans[0].result = scanner.finish();
  for (const Hit& hit : scans[0].result.hits) {
    if (hit.line == 0 || hit.line > size + 1 || hit.begin > hit.line) std::abort();
    if (hit.text != stoker::printable(hit.text)) std::abort();
  }
  for (const NotableLine& line : scans[0].result.notable) {
    if (line.line > size + 1 || line.text != stoker::printable(line.text)) std::abort();
  }
  choose_root_cause(scans, std::nullopt);
  return 0;
}
