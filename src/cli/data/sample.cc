// `stoker data sample DATASET`: docs/commands/data-sample.md
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/output.h"
#include "data/look/contact_sheet.h"

namespace stoker::cli {

int data_sample(std::span<const std::string> words, Output& out) {
  std::string dataset;
  std::string page = "sample.html";
  std::int64_t count = 96;
  std::int64_t seed = 0;
  data::ContactSheetOptions options;
  Arguments arguments("data sample", "Shows some samples of a dataset on one HTML page.");
  arguments.positional("DATASET", &dataset, "a folder that stoker data pack or index made");
  arguments.option("-o,--out", &page, "FILE", "the page");
  arguments.option("--count", &count, "N", "samples, the same number of each class as far as possible");
  arguments.option("--split", &options.split, "NAME", "of this split only");
  arguments.option("--seed", &seed, "N", "another number, other samples");
  arguments.example("stoker data sample photos-s");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = no_empty_words("data sample", words); !status.ok()) return out.fail(status);
  if (count < 1 || count > 10'000)
    return out.fail(invalid("data sample: --count: {} is not between 1 and 10000", count));

  options.count = static_cast<std::uint32_t>(count);
  options.seed = static_cast<std::uint64_t>(seed);
  const Result<data::ContactSheet> sheet = data::contact_sheet(dataset, options);
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
