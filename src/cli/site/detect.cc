// `stoker site detect`: docs/commands/site-detect.md
#include "base/file.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/runs.h"
#include "cli/site/sites.h"
#include "job/site/describe.h"

namespace stoker::cli {
namespace {

struct DetectOptions {
  std::string out;
  bool force = false;
};

// Variables that clusters use for folders and quotas.
job::MachineInfo detect_host_facts() {
  job::MachineInfo seen;
  seen.day = utc_text(RealClock().wall()).substr(0, 10);
  for (const char* variable : {"SCRATCH", "WORK", "PROJECT", "STORE"}) {
    if (environment_value(variable)) seen.storage.emplace_back(variable);
  }
  seen.has_lmod = environment_value("LMOD_CMD").has_value();
  seen.has_modules = !seen.has_lmod && environment_value("MODULESHOME").has_value();
  const std::string search = environment_value("PATH").value_or("");
  for (const char* command : {"diskusage_report", "idr_quota_user", "cindata", "myquota"}) {
    for (std::string_view folder : split(search, ':')) {
      if (seen.quota_command.empty() && !folder.empty() && path_exists(Path(folder) / command))
        seen.quota_command = command;
    }
  }
  return seen;
}

Status write(const DetectOptions& o, const Path& file, const std::string& text) {
  if (path_exists(file) && !o.force)
    return exists("{}: already exists", display_path(file)).cure("stoker site detect --force");
  STOKER_RETURN_IF_ERROR(make_directories(file.parent_path().empty() ? Path(".") : file.parent_path()));
  return write_file(file, text);
}

}  // namespace

int site_detect(std::span<const std::string> words, Output& out) {
  DetectOptions o;
  bool dry_run = false;
  Arguments arguments("site detect", "Identify the current cluster; write a profile if it is unknown.");
  arguments.option("-o,--out", &o.out, "FILE",
                   "Write the profile to this file [~/.config/stoker/sites/NAME.yaml]");
  arguments.flag("--force", &o.force, "Write a profile for a known cluster, too; overwrite an existing file");
  arguments.flag("--dry-run", &dry_run, "Show the profile, write nothing");
  arguments.example("stoker site detect --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto places = site_profile_paths();
  if (!places.ok()) return out.fail(places.error());
  const auto here = find_site_by_name("auto");
  if (!here.ok() && here.error().code() != Code::not_found) return out.fail(here.error());
  const bool is_known = here.ok() && here->site.name != "generic";
  if (is_known && !o.force && o.out.empty() && !dry_run) {
    out.line("this is {}: {}", here->site.name, here->site.what);
    out.line("  next  stoker site show");
    out.json(json_text(nlohmann::ordered_json{
        {"name", here->site.name}, {"known", true}, {"file", here->site.file.string()}}));
    return exit_code::kOk;
  }
  auto scheduler = make_scheduler();
  const auto facts = scheduler.cluster(Deadline::after(std::chrono::seconds(30)));
  if (!facts.ok()) return out.fail(facts.error());
  const job::Site site = job::describe_cluster(*facts, detect_host_facts());
  const std::string text =
      "# Written by `stoker site detect` from the cluster's configuration. Edit it freely.\n" +
      job::site_text(site);
  if (dry_run) {
    out.raw(text);
    out.json(json_text(nlohmann::ordered_json{
        {"name", site.name}, {"known", is_known}, {"file", nullptr}, {"profile", text}}));
    return exit_code::kOk;
  }
  const Path file = o.out.empty() ? places->own / (site.name + ".yaml") : Path(o.out);
  if (const Status written = write(o, file, text); !written.ok()) return out.fail(written);
  out.line("this is {}: {}, {}", site.name, counted(site.partitions.size(), "partition"),
           counted(site.nodes.size(), "node type"));
  out.line("  wrote {}", display_path(file));
  out.line("  next  stoker site show");
  out.json(json_text(nlohmann::ordered_json{
      {"name", site.name}, {"known", is_known}, {"file", file.string()}, {"profile", text}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
