#include "report/study/plot.h"

#include <algorithm>
#include <cmath>

#include "base/encode.h"
#include "base/json/json.h"
#include "report/html/markup.h"
#include "stoker/text.h"

namespace stoker::report::study {

const std::string_view kPlotStyle = R"css(
.dots{fill:none;stroke:currentColor;stroke-linecap:round;stroke-width:5px;vector-effect:non-scaling-stroke;opacity:.5}
.dots.top{stroke-width:8px;opacity:1}.dots.small{stroke-width:3px;opacity:.75}
.ink{color:var(--ink)}.best{color:var(--s1)}
.pruned{fill:none;stroke:currentColor;stroke-width:1;vector-effect:non-scaling-stroke;stroke-dasharray:2 3;opacity:.45}
.band{fill:var(--s0)}
.weight{fill:var(--s0)}
.ring{fill:none;stroke:var(--ink);stroke-width:1.5;visibility:hidden}
.on .ring{visibility:visible}
)css";

const std::string_view kPlotScript = R"js(
(()=>{for(const f of document.querySelectorAll('figure[data-points]')){const p=JSON.parse(f.dataset.points),
s=f.querySelector('svg.plot'),o=f.querySelector('output'),r=f.querySelector('.ring');
s.addEventListener('pointermove',e=>{const b=s.getBoundingClientRect(),x=e.clientX-b.left,y=e.clientY-b.top;let n=-1,d=900;
p.forEach((q,i)=>{const u=q[0]*b.width/1000-x,v=q[1]-y,w=u*u+v*v;if(w<d){d=w;n=i}});
f.classList.toggle('on',n>=0);o.textContent=n<0?'':p[n][2];
if(n>=0){r.setAttribute('cx',p[n][0]/10+'%');r.setAttribute('cy',p[n][1])}});
s.addEventListener('pointerleave',()=>{f.classList.remove('on');o.textContent=''})}})();
)js";

namespace {

constexpr double kAbove = 8;  // half a label
constexpr double kBelow = 22;
constexpr double kStretched = 1000;  // width of the viewBox
constexpr std::size_t kTicksAcross = 4;
constexpr std::size_t kTicksUp = 4;

bool is_place(const PlotPlace& at) { return std::isfinite(at.x) && std::isfinite(at.y); }

double down(const Plot& plot, double fraction) { return plot.height * (1 - fraction); }

void add_shades(std::string& svg, const Plot& plot) {
  for (const PlotShade& shade : plot.shades) {
    svg += format("<path class=\"band\" fill-opacity=\"{:.2f}\" d=\"", shade.opacity);
    for (const auto& [low, high] : shade.corners) {
      svg += format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", kStretched * low.x, down(plot, high.y),
                    kStretched * (high.x - low.x), plot.height * (high.y - low.y),
                    kStretched * (high.x - low.x));
    }
    svg += "\"/>";
  }
}

void add_lines(std::string& svg, const Plot& plot) {
  for (const PlotMarks& line : plot.lines) {
    std::string path;
    bool is_drawing = false;
    for (const PlotPlace& at : line.at) {
      if (is_place(at))
        path += format("{}{:.1f} {:.1f}", is_drawing ? "L" : "M", kStretched * at.x, down(plot, at.y));
      is_drawing = is_place(at);
    }
    svg += format("<path class=\"{}\" d=\"{}\"/>", line.css_class, path);
  }
}

// A dot is a line of no length with round ends, which stretching leaves round.
void add_dots(std::string& svg, const Plot& plot) {
  for (const PlotMarks& dots : plot.dots) {
    svg += format("<path class=\"dots {}\" d=\"", dots.css_class);
    for (const PlotPlace& at : dots.at) {
      if (is_place(at)) svg += format("M{:.1f} {:.1f}h0", kStretched * at.x, down(plot, at.y));
    }
    svg += "\"/>";
  }
}

void add_grid(std::string& svg, const Plot& plot) {
  // Lines would divide the areas of a shaded plot.
  for (const ScaleTick& tick : plot.shades.empty() ? plot.y.ticks(kTicksUp) : std::vector<ScaleTick>()) {
    const double at = kAbove + down(plot, tick.fraction);
    svg += format("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", at, at);
  }
  for (const ScaleTick& tick : plot.x.ticks(kTicksAcross)) {
    const char* anchor = tick.fraction < 0.06 ? "start" : tick.fraction > 0.93 ? "end" : "middle";
    svg += format("<text class=\"tick\" x=\"{:.2f}%\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>",
                  100 * tick.fraction, kAbove + plot.height + 16, anchor, escape_html(tick.label));
  }
}

std::string labels_up(const Plot& plot) {
  constexpr double kCharacter = 6.5;
  const std::vector<ScaleTick> ticks = plot.y.ticks(kTicksUp);
  std::size_t longest = 0;
  for (const ScaleTick& tick : ticks) longest = std::max(longest, tick.label.size());
  const double width = kCharacter * static_cast<double>(longest) + 6;
  std::string svg = format("<svg class=\"labels\" aria-hidden=\"true\" width=\"{:.0f}\" height=\"{}\">",
                           width, kAbove + plot.height + kBelow);
  for (const ScaleTick& tick : ticks) {
    svg += format("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", width - 6,
                  kAbove + down(plot, tick.fraction) + 4, escape_html(tick.label));
  }
  return svg + "</svg>";
}

std::string hint_data(const Plot& plot) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PlotHint& hint : plot.hints) {
    if (is_place(hint.at))
      list.push_back(
          {std::lround(kStretched * hint.at.x), std::lround(kAbove + down(plot, hint.at.y)), hint.text});
  }
  return list.empty() ? "" : format(" data-points=\"{}\"", escape_html(json_text(list)));
}

}  // namespace

std::string draw_plot(const Plot& plot) {
  std::string legend;
  for (const auto& [css_class, text] : plot.legend)
    legend += format(" <span class=\"key {}\">{}</span>", css_class, escape_html(text));
  std::string svg = format("<svg class=\"plot\" role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{}\">",
                           escape_html(plot.title), kAbove + plot.height + kBelow);
  add_grid(svg, plot);
  svg += format(
      "<svg y=\"{}\" width=\"100%\" height=\"{}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" "
      "overflow=\"visible\">",
      kAbove, plot.height, kStretched, plot.height);
  add_shades(svg, plot);
  add_lines(svg, plot);
  add_dots(svg, plot);
  svg += "</svg>";
  svg += "<circle class=\"ring\" r=\"7\"/></svg>";
  return format(
      "<figure{}><figcaption><b>{}</b>{}<output></output></figcaption><div "
      "class=\"axes\">{}{}</div>{}</figure>\n",
      hint_data(plot), escape_html(plot.title), legend, svg, labels_up(plot),
      html::element("p", "source", plot.note));
}

}  // namespace stoker::report::study
