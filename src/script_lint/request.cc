#include "script_lint/request.h"

#include <algorithm>

#include "stoker/text.h"

namespace stoker::script_lint {
const Directive* SlurmRequest::find(std::string_view name) const {
  const auto found = std::find_if(directives.rbegin(), directives.rend(),
                                  [&](const Directive& each) { return each.option.name == name; });
  return found == directives.rend() ? nullptr : &*found;
}

slurm::RequestedResources SlurmRequest::asked() const {
  return slurm::RequestedResources([this](std::string_view name) -> std::optional<std::string> {
    const Directive* directive = find(name);
    return directive == nullptr ? std::nullopt : std::optional(directive->option.value);
  });
}

std::vector<GpuRequest> SlurmRequest::gpus() const {
  std::vector<GpuRequest> found;
  for (slurm::RequestedGpus& each : asked().gpus())
    found.push_back({find(each.option), std::move(each.type), std::move(each.count)});
  return found;
}

bool SlurmRequest::has_whole_nodes() const {
  const Directive* memory = find("--mem");
  return find("--exclusive") != nullptr || (memory != nullptr && memory->option.value == "0");
}

bool is_free_text(std::string_view option) {
  return option == "--job-name" || option == "--comment" || option == "--mail-user";
}

void override_options(const std::vector<std::string>& options, SlurmRequest& request) {
  for (const std::string& text : options) {
    const auto read = slurm::read_user_script("", "#!\n#SBATCH " + text + "\n");
    if (!read.ok()) continue;
    for (const slurm::SbatchOption& option : read->options) {
      std::erase_if(request.directives,
                    [&](const Directive& each) { return each.option.name == option.name; });
      request.directives.push_back({option, {0, 0}, {0, 0}});
    }
  }
}

SlurmRequest read_request(std::string_view text, const std::vector<bash::Comment>& comments,
                          std::size_t first_command) {
  SlurmRequest request;
  int line = 1;
  std::size_t counted = 0;
  for (const bash::Comment& comment : comments) {
    const std::size_t begin = comment.span.begin;
    if (begin < counted) continue;
    line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                        text.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
    counted = begin;
    const bool starts_line = begin > 0 && text[begin - 1] == '\n';
    const std::string_view words = text.substr(begin, comment.span.end - begin);
    // Indented lines are no options; after the first command they may be intended as options.
    const std::size_t line_begin = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;
    const bool is_alone = trim(text.substr(line_begin, begin - line_begin)).empty();
    if (!starts_line && (begin < first_command || !is_alone)) continue;
    for (slurm::SbatchOption& option : slurm::read_option_line(words, line)) {
      Directive directive;
      directive.span = {begin + option.begin, begin + option.end};
      directive.value = {begin + option.value_begin, begin + option.end};
      directive.option = std::move(option);
      (begin < first_command ? request.directives : request.ignored).push_back(std::move(directive));
    }
  }
  return request;
}

}  // namespace stoker::script_lint
