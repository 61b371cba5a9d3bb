// `stoker data sample DATASET`: docs/commands/data-sample.md
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/output.h"
#include "inspect/sheet/contact_sheet.h"

namespace stoker::cli {

int data_sample(std::span<const std::string> words, Output& out) {
  std::string dataset;
  std::string page = "sample.html";
  std::int64_t count = 96;
  std::int64_t seed = 0;
  inspect::ContactSheetOptions options;
  Arguments arguments("data sample", "Show samples of a dataset on one HTML page.");
  arguments.positional("DATASET", &dataset, "Dataset folder");
  arguments.option("-o,--out", &page, "FILE", "Write the page to this file");
  arguments.option("--count", &count, "N", "Show N samples, evenly over the classes");
  arguments.option("--split", &options.split, "NAME", "Use only this split");
  arguments.option("--seed", &seed, "N", "Seed the selection");
  arguments.example("stoker data sample photos-s");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = check_no_empty_arguments("data sample", words); !status.ok())
    return out.fail(status);
  if (count < 1 || count > 10'000)
    return out.fail(invalid("data sample: --count: {} is not between 1 and 10000", count));

  options.count = static_cast<std::uint32_t>(count);
  options.seed = static_cast<std::uint64_t>(seed);
  const Result<inspect::ContactSheet> sheet = inspect::contact_sheet(dataset, options);
  if (!sheet.ok()) return out.fail(sheet.error());
  if (const Status status = write_file(page, sheet->html); !status.ok()) return out.fail(status);
  out.line("wrote {}: {}, {}{}", printable(page), counted(sheet->samples, "sample"),
           rounded({sheet->html.size()}), sheet->broken == 0 ? "" : format(", {} broken", sheet->broken));
  const nlohmann::ordered_json json = {{"page", printable(page)},
                                       {"samples", sheet->samples},
                                       {"broken", sheet->broken},
                                       {"bytes", sheet->html.size()}};
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
