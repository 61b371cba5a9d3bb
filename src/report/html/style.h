// The page's one style sheet and one script. The script only adds hovering: without it nothing is missing.
#pragma once

#include <string_view>

namespace stoker::report::html {

inline constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--paper:#fdfdfb;--ink:#1b1c1e;--soft:#62666c;--rule:#dcdcd6;--grid:#e8e8e3;--accent:#a8430f;
--bad:#b3261e;--good:#2f6f44;--tint:#f4f3ee;
--s0:#1f5fa8;--s1:#b85009;--s2:#2b7d56;--s3:#93408f;--s4:#8a6900;--s5:#0c7a83;--s6:#7a5a3c;--s7:#6a6f78;
--data:#d4541b;--forward:#8fb4dc;--backward:#3d76b8;--communication:#93408f;--optimizer:#2b7d56;--checkpoint:#d8a018;
--other:#b9bcc0;--validation:#4fb0b5;--outside:#dfe0dd}
@media(prefers-color-scheme:dark){:root{--paper:#17181a;--ink:#e6e5e1;--soft:#9b9fa5;--rule:#34363a;--grid:#2a2c2f;
--accent:#f0925a;--bad:#f2867e;--good:#7cc79a;--tint:#1f2123;
--s0:#78aef0;--s1:#f29a5c;--s2:#6cc498;--s3:#d693d2;--s4:#dcb94a;--s5:#5fcbd3;--s6:#c4a283;--s7:#a6abb3;
--data:#ee7a41;--forward:#9cc3ee;--backward:#4d86c8;--communication:#b866b4;--optimizer:#4da57b;--checkpoint:#e2b13c;
--other:#7b7f85;--validation:#4fb0b5;--outside:#3f4246}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
"Liberation Sans",Arial,sans-serif;font-variant-numeric:tabular-nums lining-nums}
main{max-width:1160px;margin:0 auto;padding:48px 32px 64px}
main+main{border-top:3px solid var(--ink)}
h1{font:600 34px/1.18 Charter,"Bitstream Charter","Iowan Old Style","Source Serif 4",Cambria,Georgia,"Liberation Serif",serif;
letter-spacing:-.01em;margin:0 0 14px;max-width:28em;text-wrap:balance;overflow-wrap:anywhere}
h2{font-size:15px;font-weight:600;line-height:1.4;margin:0}
h3{font-size:13px;font-weight:600;line-height:1.4;margin:26px 0 6px}
p{margin:0 0 10px}
.over{color:var(--soft);font-size:13px;margin-bottom:14px;overflow-wrap:anywhere}
.lede{color:var(--soft);max-width:60em;overflow-wrap:anywhere}
.bad{color:var(--bad)}.good{color:var(--good)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(140px,1fr));gap:22px 28px;margin:30px 0 40px}
.figures div{display:flex;flex-direction:column}
.figures dd{margin:0;font:600 27px/1.15 Charter,"Bitstream Charter","Iowan Old Style",Cambria,Georgia,"Liberation Serif",serif;
order:-1}
.figures dt{color:var(--soft);font-size:13px;max-width:15em;line-height:1.35}
section{display:grid;grid-template-columns:150px minmax(0,1fr);gap:8px 32px;border-top:1px solid var(--rule);padding:20px 0 34px}
section>div{min-width:0}
.source{color:var(--soft);font-size:12px;line-height:1.4;margin:6px 0 0;overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr));gap:30px 40px}
.charts.small{grid-template-columns:repeat(auto-fit,minmax(min(100%,260px),1fr));gap:26px 36px}
figure{margin:0;min-width:0}
figcaption{font-size:13px;min-height:20px}
figcaption b{font-weight:600;margin-right:8px}
.key{white-space:nowrap;margin-right:10px}
.key::before{content:"";display:inline-block;width:14px;height:3px;margin-right:5px;vertical-align:middle;background:currentColor}
output{display:block;color:var(--soft);min-height:18px;font-size:12px;line-height:18px;white-space:nowrap;overflow:hidden;
text-overflow:ellipsis}
svg{display:block;overflow:visible}
svg.bar{border-radius:2px;overflow:hidden}
.grid{stroke:var(--grid)}
.tick{fill:var(--soft);font-size:11px;paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.mark{stroke:var(--accent);stroke-dasharray:2 3}
text.mark{stroke:none;fill:var(--accent);font-size:11px}
.limit{stroke:var(--bad);stroke-dasharray:6 3}
.axes{display:flex}.axes .plot{flex:1;min-width:0}.axes .labels{flex:none;order:-1}
.axis{stroke:var(--soft)}
.parallel .name{fill:var(--ink);font-size:11px}
.cursor{stroke:var(--soft);visibility:hidden}
.on .cursor{visibility:visible}
.line,.faint{fill:none;stroke:currentColor;stroke-width:1.75;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.faint{stroke-width:1;opacity:.3}
.dot{fill:currentColor;stroke:var(--paper);stroke-width:1}
.s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}
.s4{color:var(--s4)}.s5{color:var(--s5)}.s6{color:var(--s6)}.s7{color:var(--s7)}
.p-data{fill:var(--data);color:var(--data)}.p-forward{fill:var(--forward);color:var(--forward)}
.p-backward{fill:var(--backward);color:var(--backward)}
.p-communication{fill:var(--communication);color:var(--communication)}
.p-optimizer{fill:var(--optimizer);color:var(--optimizer)}.p-checkpoint{fill:var(--checkpoint);color:var(--checkpoint)}
.p-other{fill:var(--other);color:var(--other)}.p-validation{fill:var(--validation);color:var(--validation)}
.p-outside{fill:var(--outside);color:var(--outside)}
.pictures{display:flex;flex-wrap:wrap;gap:14px 18px;align-items:flex-end;margin-top:6px}
.pictures div{min-width:0;max-width:100%}
.pictures img{display:block;max-width:100%;height:auto;max-height:420px;background:var(--tint)}
.pictures .magnified{width:128px;image-rendering:pixelated}
.counts{margin-top:6px}.counts rect{fill:var(--s0)}
.range{display:flex;justify-content:space-between;color:var(--soft);font-size:11px;border-top:1px solid var(--grid);margin:0}
.bars{display:grid;grid-template-columns:auto minmax(0,1fr) auto;gap:7px 12px;align-items:center;font-size:13px}
.bars span:nth-child(3n){text-align:right;color:var(--soft)}
.swatch::before{content:"";display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:7px;background:currentColor}
.swatch span{color:var(--ink)}
.legend{font-size:13px}.legend .swatch{margin-right:14px;white-space:nowrap}
.scroll{overflow-x:auto;margin:4px 0 0}
table{border-collapse:collapse;font-size:13px;line-height:1.35;min-width:50%}
th{font-weight:500;color:var(--soft);text-align:left;vertical-align:bottom;border-bottom:1px solid var(--rule)}
th,td{padding:4px 18px 4px 0;white-space:nowrap}
td{border-bottom:1px solid var(--grid);vertical-align:top}
td.wrap{white-space:normal;min-width:15em;overflow-wrap:anywhere}
tr.sum td{border-bottom:0;font-weight:600}
.num{text-align:right}
dl.facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:4px 22px;margin:0;font-size:13.5px}
dl.facts dt{color:var(--soft)}
dl.facts dd{margin:0;overflow-wrap:anywhere}
dl.facts small,.tiny{color:var(--soft);font-size:11.5px;margin-left:8px}
pre{font:12.5px/1.55 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;background:var(--tint);padding:12px 14px;
margin:4px 0 0;white-space:pre-wrap;overflow-wrap:anywhere;border-radius:3px}
pre.copy{user-select:all}
pre i{font-style:normal;color:var(--soft)}
footer{border-top:1px solid var(--rule);padding-top:14px;color:var(--soft);font-size:12px;overflow-wrap:anywhere}
@media(max-width:760px){main{padding:26px 16px 40px}h1{font-size:25px}section{grid-template-columns:minmax(0,1fr)}
.figures{gap:18px 24px;margin:22px 0 28px}.figures dd{font-size:23px}
dl.facts{grid-template-columns:minmax(0,1fr)}dl.facts dt{margin-top:7px}th,td{padding-right:14px}
.tall{display:grid;grid-template-columns:repeat(4,max-content) minmax(0,1fr)}.tall :is(thead,tbody,tr){display:contents}
.tall td,.tall th{white-space:normal}.tall td:not(.own){border-bottom:0;padding-bottom:0}
.tall .own{grid-column:1/-1}.tall th.own{display:none}.tall td.own{padding-bottom:9px}}
@media print{:root{color-scheme:light}@page{margin:16mm 14mm}body{font-size:10.5pt}main{padding:0;max-width:none}
section{break-inside:auto;padding:12px 0 18px}figure,tr,.bars,pre{break-inside:avoid}h2{break-after:avoid}output{display:none}
.scroll{overflow:visible}}
)css";

inline constexpr std::string_view kScript = R"js(
(()=>{const F=[...document.querySelectorAll('figure[data-chart]')].map(f=>({f,c:JSON.parse(f.dataset.chart),
s:f.querySelector('svg.plot'),m:f.querySelector('.cursor'),o:f.querySelector('output')}));
const bytes=v=>{const u=['B','kB','MB','GB','TB'];let i=0;while(v>=999.5&&i<4){v/=1000;i++}return v.toPrecision(3)*1+' '+u[i]};
const time=v=>v<60?v.toPrecision(3)*1+' s':v<3600?Math.floor(v/60)+' min '+Math.floor(v%60)+' s':
Math.floor(v/3600)+' h '+Math.floor(v%3600/60)+' min';
const text=(v,u)=>u=='%'?(100*v).toFixed(1)+' %':u=='B'?bytes(v):u=='B/s'?bytes(v)+'/s':u=='s'?time(v):v.toPrecision(4)*1+'';
const near=(a,x)=>{let l=0,h=a.length-1;while(h-l>1){const m=(l+h)>>1;a[m]<x?l=m:h=m}return x-a[l]<a[h]-x?l:h};
const show=(f,x)=>{const p=100*(x-f.c.a)/(f.c.b-f.c.a)+'%';f.m.setAttribute('x1',p);f.m.setAttribute('x2',p);
f.o.textContent=f.c.n+' '+(f.c.u?text(x,f.c.u):Math.round(x))+f.c.l.map(l=>{const i=near(l.x,x),v=l.y[i];
return v==null?'':'   '+l.n+' '+text(v,f.c.v)}).join('');f.f.classList.add('on')};
const hide=f=>{f.f.classList.remove('on');f.o.textContent=''};
for(const f of F){const twins=F.filter(g=>g.c.n==f.c.n&&g.c.a==f.c.a&&g.c.b==f.c.b);
f.s.addEventListener('pointermove',e=>{const b=f.s.getBoundingClientRect(),
q=Math.min(1,Math.max(0,(e.clientX-b.left)/b.width));for(const g of twins)show(g,f.c.a+q*(f.c.b-f.c.a))});
f.s.addEventListener('pointerleave',()=>twins.forEach(hide))}})();
)js";

}  // namespace stoker::report::html
