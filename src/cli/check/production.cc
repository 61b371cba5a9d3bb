#include "cli/check/production.h"

#include <algorithm>

#include "base/json/json.h"
#include "base/time.h"
#include "explain/production/production.h"

namespace stoker::cli {

int check_production(const std::string& name, const job::Job& job, const std::optional<job::Site>& site,
                     const Words& words, Output& out) {
  using explain::Answer;
  const RealClock clock;
  const double now = std::chrono::duration<double>(clock.wall().time_since_epoch()).count();
  const auto points = explain::production_points(job, site, now, words);
  const auto count = [&](Answer answer) {
    return std::count_if(points.begin(), points.end(),
                         [&](const auto& point) { return point.answer == answer; });
  };
  out.line("{}", words
                     .say("{}: {} of {} points are met, {} not, {} not measurable", printable(name),
                          count(Answer::yes), points.size(), count(Answer::no), count(Answer::not_measurable))
                     .text());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::size_t number = 0;
  for (const explain::ProductionPoint& point : points) {
    ++number;
    const Said mark = point.answer == Answer::yes  ? words.say("yes")
                      : point.answer == Answer::no ? words.say("no")
                                                   : quoted("?");
    out.line("  {:<4}{:>3}  {}", mark.text(), number, words.of(point.question));
    for (const std::string& line : point.evidence) out.line("           {}", line);
    if (!point.cure.empty()) out.line("           {}", words.say("try: {}", point.cure).text());
    list.push_back({{"number", number},
                    {"name", std::string(point.name)},
                    {"question", std::string(words.of(point.question))},
                    {"answer", std::string(to_text(point.answer))},
                    {"evidence", point.evidence},
                    {"cure", point.cure}});
  }
  const bool is_ready = count(Answer::no) == 0;
  out.json(
      json_text(nlohmann::ordered_json{{"job", printable(name)}, {"ready", is_ready}, {"points", list}}));
  return is_ready ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli
