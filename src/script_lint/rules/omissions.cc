// Rules for options that sbatch ignores, and for missing options.
#include <algorithm>
#include <array>
#include <cctype>

#include "script_lint/rule.h"
#include "slurm/script/option_names.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "  #SBATCH --time=2:00:00", or a script with only "# SBATCH" lines: reported once, fixed in all lines.
void find_moved_directive(const Script& script, FindingReport& report) {
  std::vector<Edit> edits;
  bash::Span first;
  bool is_indented = false;
  for (const bash::Comment& comment : script.tree.comments) {
    if (comment.span.begin >= script.first_command) break;
    const std::string_view text = script.at(comment.span);
    const std::size_t line = script.line_of(comment.span.begin).begin;
    const bool is_moved = line != comment.span.begin && text.starts_with("#SBATCH -");
    const bool is_apart =
        line == comment.span.begin && text.starts_with("# SBATCH -") && script.request.directives.empty();
    if (!is_moved && !is_apart) continue;
    if (edits.empty()) {
      first = comment.span;
      is_indented = is_moved;
    }
    if (is_moved) edits.push_back({line, comment.span.begin, ""});
    if (is_apart) edits.push_back({comment.span.begin + 1, comment.span.begin + 2, ""});
  }
  if (edits.empty()) return;
  report
      .add(first, is_indented
                      ? message("blanks before #SBATCH: sbatch reads a comment and ignores the options")
                      : message("a blank after #: sbatch reads a comment and ignores the options"))
      .edits = std::move(edits);
}

bool starts_free_text_option(std::string_view option) {
  return option.starts_with("--job-name") || option.starts_with("-J") || option.starts_with("--mail") ||
         option.starts_with("--comment");
}

// "#SBACTH": reported once per spelling, at a line that matters, and fixed in all lines.
void find_misspelt_mark(const Script& script, FindingReport& report) {
  struct Place {
    bash::Span at;
    std::string word;
    bool is_free_text = true;
    std::vector<Edit> edits;
  };
  std::vector<Place> places;
  for (const bash::Comment& comment : script.tree.comments) {
    if (comment.span.begin >= script.first_command) break;
    const std::string_view text = script.at(comment.span);
    const std::size_t end = std::min(
        text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 1), text.size());
    const std::string_view word = text.substr(1, end - 1);
    if (word == "SBATCH" || word.size() < 5 || word.size() > 7 || text.substr(end).find(" -") != 0) continue;
    // "#xSBATCH" is disabled, and YBATCH belongs to a specific site.
    if (word.substr(1) == "SBATCH" || word == "YBATCH") continue;
    constexpr std::array<std::string_view, 1> kWord = {"sbatch"};
    if (closest(word, kWord).empty()) continue;
    const bash::Span at{comment.span.begin + 1, comment.span.begin + end};
    auto place =
        std::find_if(places.begin(), places.end(), [&](const Place& each) { return each.word == word; });
    if (place == places.end()) place = places.insert(places.end(), {at, std::string(word), true, {}});
    const bool is_free_text = starts_free_text_option(trim(text.substr(end)));
    if (place->is_free_text && !is_free_text) place->at = at;
    place->is_free_text = place->is_free_text && is_free_text;
    place->edits.push_back({at.begin, at.end, "SBATCH"});
  }
  for (Place& place : places) {
    ScriptFinding& finding =
        report.add(place.at, message("#{} is a comment for sbatch, which ignores its options", place.word));
    finding.edits = std::move(place.edits);
    if (place.is_free_text) finding.level = Level::advice;
  }
}

// "SBATCH --time=1:00:00": reported once, fixed in all lines.
void find_bare_mark(const Script& script, FindingReport& report) {
  std::vector<Edit> edits;
  bash::Span first;
  for (const ProgramCall& call : script.calls) {
    const bool has_option = !call.words.empty() && call.words[0].starts_with('-');
    if (call.program != "SBATCH" || !has_option) continue;
    if (edits.empty()) first = call.span;
    edits.push_back({call.span.begin, call.span.begin, "#"});
  }
  if (edits.empty()) return;
  report.add(first, message("without # the shell runs SBATCH as a program, and sbatch ignores the options"))
      .edits = std::move(edits);
}

void find_not_a_directive(const Script& script, FindingReport& report) {
  find_moved_directive(script, report);
  find_misspelt_mark(script, report);
  find_bare_mark(script, report);
}

// Dashes from word processors.
constexpr std::string_view kDashes[] = {"\u2013", "\u2014", "\u2212"};

// A long dash before an option of a program, which becomes a plain argument.
void find_long_dash_of_commands(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (call.program == "echo" || call.program == "printf") continue;
    for (const bash::Word* word : call.typed) {
      const std::string_view text = script.at(word->span);
      for (std::string_view dash : kDashes) {
        const std::string_view name = text.substr(std::min(dash.size(), text.size()));
        if (!text.starts_with(dash) || name.empty() || std::isalpha(static_cast<unsigned char>(name[0])) == 0)
          continue;
        report.replace(
            {word->span.begin, word->span.begin + dash.size()},
            message("a long dash from a word processor instead of --: for {} this is not an option",
                    printable(call.program)),
            name.size() == 1 ? "-" : "--");
      }
    }
  }
}

void find_long_dash(const Script& script, FindingReport& report) {
  find_long_dash_of_commands(script, report);
  for (const bash::Comment& comment : script.tree.comments) {
    const std::string_view text = script.at(comment.span);
    if (comment.span.begin >= script.first_command) break;
    if (!text.starts_with("#SBATCH")) continue;
    const std::size_t begin = text.find_first_not_of(" \t", 7);
    if (begin == std::string_view::npos) continue;
    std::size_t end = begin;
    bool has_long = false;
    for (bool is_dash = true; is_dash;) {
      is_dash = end < text.size() && text[end] == '-';
      if (is_dash) ++end;
      for (std::string_view dash : kDashes) {
        if (!text.substr(end).starts_with(dash)) continue;
        end += dash.size();
        has_long = is_dash = true;
      }
    }
    if (!has_long) continue;
    const bool is_letter = end + 1 >= text.size() || text[end + 1] == ' ';
    report.replace(
        {comment.span.begin + begin, comment.span.begin + end},
        message("a long dash from a word processor instead of --: for sbatch this is not an option"),
        is_letter ? "-" : "--");
  }
}

void find_twice(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const Directive* last = script.request.find(directive.option.name);
    if (last == &directive || last->option.value == directive.option.value) continue;
    report.add(directive.span, message("{} is repeated; the one in line {} counts", directive.option.typed,
                                       last->option.line));
  }
}

void find_no_time(const Script& script, FindingReport& report) {
  const auto& all = script.request.directives;
  if (all.empty() || script.request.find("--time") != nullptr || !script.request.ignored.empty()) return;
  // It may be a misspelt --time.
  const bool has_unknown = std::any_of(all.begin(), all.end(), [](const Directive& each) {
    return each.option.typed.starts_with("--") &&
           slurm::look_up_option(each.option.typed) == slurm::OptionName::unknown;
  });
  if (has_unknown) return;
  if (has_default_time_of_site(script, report.context())) return;  // site-limit reports it
  report
      .add(all.front().span, message("no --time: the default of the partition applies, which may end the "
                                     "job early or delay its start"))
      .fix = "#SBATCH --time=1:00:00";
}

constexpr Rule kOmissionRules[] = {
    {"not-a-directive", Level::job, "a misspelt #SBATCH is a comment",
     "#!/bin/bash\n#SBACTH --time=1:00:00\n", "#!/bin/bash\n#SBATCH --time=1:00:00\n", "sbatch(1)",
     find_not_a_directive},
    {"long-dash", Level::job, "text copied from a document has dashes that begin no option",
     "#!/bin/bash\n#SBATCH \u2013-time=1:00:00\n", "#!/bin/bash\n#SBATCH --time=1:00:00\n",
     "students' scripts", find_long_dash},
    {"duplicate-option", Level::advice, "of a repeated option the last one counts",
     "#!/bin/bash\n#SBATCH --mem=4G\n#SBATCH --mem=8G\n", "#!/bin/bash\n#SBATCH --mem=8G\n", "sbatch(1)",
     find_twice},
    {"no-time", Level::advice,
     "without --time the default of the partition applies, and the job does not fit into gaps",
     "#!/bin/bash\n#SBATCH --mem=4G\n", "#!/bin/bash\n#SBATCH --mem=4G\n#SBATCH --time=1:00:00\n",
     "sbatch(1), --time", find_no_time},
};

}  // namespace

std::span<const Rule> omission_rules() { return kOmissionRules; }

}  // namespace stoker::script_lint
