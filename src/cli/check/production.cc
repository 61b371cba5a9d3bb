#include "cli/check/production.h"

#include <algorithm>

#include "base/json/json.h"
#include "preflight/production/production.h"
#include "stoker/time.h"

namespace stoker::cli {

int check_production(const std::string& name, const job::Job& job, const std::optional<job::Site>& site,
                     const Translator& words, Output& out) {
  using preflight::PointAnswer;
  const RealClock clock;
  const double now = std::chrono::duration<double>(clock.wall().time_since_epoch()).count();
  const auto points = preflight::production_points(job, site, now);
  const auto count = [&](PointAnswer answer) {
    return std::count_if(points.begin(), points.end(),
                         [&](const auto& point) { return point.answer == answer; });
  };
  out.line("{}", words
                     .localize("{}: {} of {} checks pass, {} fail, {} cannot be measured", printable(name),
                               count(PointAnswer::yes), points.size(), count(PointAnswer::no),
                               count(PointAnswer::not_measurable))
                     .text());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::size_t number = 0;
  for (const preflight::ProductionPoint& point : points) {
    ++number;
    const Localized mark = point.answer == PointAnswer::yes  ? words.localize("yes")
                           : point.answer == PointAnswer::no ? words.localize("no")
                                                             : untranslated("?");
    out.line("  {:<4}{:>3}  {}", mark.text(), number, words.translate(point.question));
    nlohmann::ordered_json evidence = nlohmann::ordered_json::array();
    for (const Message& line : point.evidence) {
      out.line("           {}", words.render(line));
      evidence.push_back(words.render(line));
    }
    if (!point.cure.empty())
      out.line("           {}", words.localize("try: {}", words.render(point.cure)).text());
    list.push_back({{"number", number},
                    {"name", std::string(point.name)},
                    {"question", std::string(words.translate(point.question))},
                    {"answer", std::string(to_text(point.answer))},
                    {"evidence", evidence},
                    {"cure", words.render(point.cure)}});
  }
  const bool is_ready = count(PointAnswer::no) == 0;
  out.json(
      json_text(nlohmann::ordered_json{{"job", printable(name)}, {"ready", is_ready}, {"points", list}}));
  return is_ready ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli
