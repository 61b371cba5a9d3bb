// `stoker schema KIND`: docs/commands/schema.md
#include <array>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/output.h"
#include "job/json_schema.h"

namespace stoker::cli {

int json_schema(std::span<const std::string> words, Output& out) {
  constexpr std::array<std::string_view, 1> kKinds = {"job"};
  std::string kind;
  Arguments arguments("schema", "Print the JSON Schema of a kind of file, for editors and validators.");
  arguments.positional("KIND", &kind, "Kind of file: job");
  arguments.choices(kKinds);
  arguments.example("stoker schema job > job.schema.json");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const auto known = parse_choice("schema", "KIND", kind, kKinds); !known.ok())
    return out.fail(known.error());
  out.raw(job::json_schema() + "\n");
  out.json(job::json_schema());
  return exit_code::kOk;
}

}  // namespace stoker::cli
