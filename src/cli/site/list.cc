// `stoker site list`: docs/commands/site-list.md
#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/site/sites.h"

namespace stoker::cli {

int site_list(std::span<const std::string> words, Output& out) {
  Arguments arguments("site list", "List the known clusters and the current one.");
  arguments.example("stoker site list");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto places = site_profile_paths();
  if (!places.ok()) return out.fail(places.error());
  const auto here = find_site_by_name("auto");
  const std::string name_here = here.ok() ? here->site.name : "";
  nlohmann::ordered_json sites = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows;
  for (const job::ListedSite& listed : job::list_sites(*places)) {
    const std::string what = !listed.site             ? "damaged: " + std::string(listed.problem.message())
                             : listed.site->successor ? "now " + *listed.site->successor
                                                      : listed.site->what;
    const bool is_here = listed.name == name_here;
    rows.push_back({listed.name, is_here ? "here" : "", what});
    sites.push_back({{"name", listed.name},
                     {"here", is_here},
                     {"what", what},
                     {"file", listed.file.string()},
                     {"damaged", !listed.site.has_value()}});
  }
  out.table({"SITE", "", "WHAT"}, rows);
  out.json(json_text(nlohmann::ordered_json{{"sites", sites}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
