// `stoker data diff FIRST SECOND`: docs/commands/data-diff.md
#include "inspect/diff.h"

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kWords[] = {"only in the second", "only in the first", "with different content",
                                       "with a different label", "in a different split"};

void print(const std::string& first, const std::string& second, const inspect::DatasetDiff& diff,
           Output& out) {
  out.line("{} version {} → {} version {}", printable(first), diff.first_version.substr(0, 8),
           printable(second), diff.second_version.substr(0, 8));
  for (const std::string& line : diff.schema) out.line("  {}", line);
  constexpr std::size_t kShown = 3;
  for (std::size_t c = 0; c < std::size(kWords); ++c) {
    if (diff.counts[c] == 0) continue;
    std::vector<std::string> some;
    for (const inspect::SampleChange& change : diff.samples) {
      if (static_cast<std::size_t>(change.change) != c || some.size() == kShown) continue;
      some.push_back(printable(change.key) +
                     (change.before.empty()
                          ? ""
                          : format(" ({} → {})", printable(change.before), printable(change.after))));
    }
    out.line("  {} {}: {}{}", grouped(diff.counts[c]), kWords[c], join(some, ", "),
             diff.counts[c] > kShown ? ", ..." : "");
  }
  if (diff.order_differs) out.line("  same samples in different shards or order");
  out.line("  {} the same", grouped(diff.same));
}

void print_same(const std::string& first, const std::string& second, const inspect::DatasetDiff& diff,
                Output& out) {
  const std::string version = diff.first_version.substr(0, 8);
  if (diff.first_version == diff.second_version)
    return out.line("{} and {} are identical: version {}", printable(first), printable(second), version);
  out.line("{} and {} have identical samples but different versions: {} and {}", printable(first),
           printable(second), version, diff.second_version.substr(0, 8));
}

std::string to_json(const inspect::DatasetDiff& diff) {
  nlohmann::ordered_json counts;
  for (std::size_t c = 0; c < std::size(kWords); ++c)
    counts[std::string(to_text(static_cast<inspect::Change>(c)))] = diff.counts[c];
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  for (const inspect::SampleChange& change : diff.samples) {
    samples.push_back({{"change", to_text(change.change)},
                       {"key", printable(change.key)},
                       {"before", change.before},
                       {"after", change.after}});
  }
  const nlohmann::ordered_json json = {{"first", diff.first_version},
                                       {"second", diff.second_version},
                                       {"is_same", diff.is_same()},
                                       {"same", diff.same},
                                       {"counts", counts},
                                       {"schema", diff.schema},
                                       {"samples", samples},
                                       {"order_differs", diff.order_differs}};
  return json_text(json);
}

}  // namespace

int data_diff(std::span<const std::string> words, Output& out) {
  std::string first;
  std::string second;
  Arguments arguments("data diff", "Compare two datasets sample by sample.");
  arguments.positional("FIRST", &first, "Dataset");
  arguments.positional("SECOND", &second, "Dataset to compare with");
  arguments.example("stoker data diff photos-v1 photos-v2");
  if (const auto code = arguments.parse(words, out)) return *code;

  const Result<inspect::DatasetDiff> diff = inspect::diff_datasets(first, second);
  if (!diff.ok()) return out.fail(diff.error());
  if (diff->is_same()) {
    print_same(first, second, *diff, out);
  } else {
    print(first, second, *diff, out);
  }
  out.json(to_json(*diff));
  return diff->is_same() ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli
