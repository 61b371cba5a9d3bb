#include "report/html/timeline.h"

#include <algorithm>

#include "base/encode.h"
#include "report/html/markup.h"
#include "report/sentence.h"
#include "report/tables.h"
#include "stoker/text.h"

namespace stoker::report::html {

namespace {

constexpr double kPhases = 18;  // height of a lane, in pixels
constexpr double kExchanges = 5;
constexpr double kBetween = 2;

std::string ms_text(double seconds) { return significant(1e3 * seconds) + " ms"; }

std::string rectangle(std::string_view css_class, const TracedSpan& span, std::string_view name,
                      double whole_s, std::string_view place) {
  return format("<rect class=\"{}\" x=\"{:.3f}%\" width=\"{:.3f}%\" {}><title>{}: {}</title></rect>",
                css_class, 100 * span.begin_s / whole_s, 100 * (span.end_s - span.begin_s) / whole_s, place,
                escape_html(name), ms_text(span.end_s - span.begin_s));
}

// The text alternative of the picture.
std::string aria_label(const TracedRank& rank) {
  std::string text = format("rank {}: ", rank.rank);
  for (const TracedSpan& span : rank.phases) {
    if (span.begin_s != rank.phases.front().begin_s) text += ", ";
    text += format("{} {}", to_text(part_of(span.name)), ms_text(span.end_s - span.begin_s));
  }
  if (!rank.exchanges.empty()) {
    text += format("; {} exchange{} with other ranks", rank.exchanges.size(),
                   rank.exchanges.size() == 1 ? "" : "s");
  }
  return text;
}

std::string row(const TracedRank& rank, double whole_s) {
  const std::string phases = format("height=\"{}\"", kPhases);
  const std::string exchanges = format("y=\"{}\" height=\"{}\"", kPhases + kBetween, kExchanges);
  std::string svg = format("<svg class=\"bar\" role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{}\">",
                           escape_html(aria_label(rank)), kPhases + kBetween + kExchanges);
  for (const TracedSpan& span : rank.phases) {
    const TimePart part = part_of(span.name);
    svg += rectangle(format("p-{}", key_of(part)), span, to_text(part), whole_s, phases);
  }
  for (const TracedSpan& span : rank.exchanges) {
    svg += rectangle("p-communication", span, span.name, whole_s, exchanges);
  }
  return svg + "</svg>";
}

std::string legend(const TracedStep& traced) {
  std::string text;
  for (const TimePart part : kStepParts) {
    const bool is_shown = std::ranges::any_of(traced.ranks, [&](const TracedRank& rank) {
      return std::ranges::any_of(rank.phases,
                                 [&](const TracedSpan& span) { return part_of(span.name) == part; });
    });
    if (!is_shown) continue;
    text +=
        format("<span class=\"swatch p-{}\">{}</span> ", key_of(part), element("span", "", to_text(part)));
  }
  text += "<span class=\"swatch p-communication\"><span>below: exchanges with other ranks</span></span>";
  return "<p class=\"legend\">" + text + "</p>";
}

}  // namespace

std::string draw_timeline(const TracedStep& traced, std::size_t most) {
  if (traced.seconds <= 0) return "";
  std::string out;
  for (std::size_t i = 0; i < std::min(most, traced.ranks.size()); ++i) {
    const TracedRank& rank = traced.ranks[i];
    out += element("span", "", format("rank {}", rank.rank)) + "<div>" + row(rank, traced.seconds) +
           "</div>" + element("span", "", ms_text(rank.end_s - rank.begin_s));
  }
  out +=
      "<span></span><div><svg role=\"presentation\" width=\"100%\" height=\"14\">"
      "<text class=\"tick\" x=\"0\" y=\"11\">0</text>"
      "<text class=\"tick\" x=\"100%\" y=\"11\" text-anchor=\"end\">" +
      ms_text(traced.seconds) + "</text></svg></div><span></span>";
  return legend(traced) + "<div class=\"bars\">" + out + "</div>\n";
}

}  // namespace stoker::report::html
