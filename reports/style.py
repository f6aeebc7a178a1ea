"""The page's CSS: one quiet sheet for light and dark, wide and narrow, screen and paper."""

CSS = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #1f2328; --soft: #5d6570; --line: #e2dfd8; --wash: #f3f1ec;
  --accent: #2f5d8a; --bar: #86a5c3;
  --pass: #1a7a48; --pass-wash: #e3f2e8; --fail: #b3261e; --fail-wash: #fbe6e3;
  --warn: #8a5a00; --warn-wash: #fbefd5; --error: #7b3f98; --error-wash: #f2e6f7;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1b1f24; --ink: #e4e6e8; --soft: #9aa4af; --line: #30363d; --wash: #22272d;
    --accent: #8ab8e6; --bar: #47698a;
    --pass: #6fcf97; --pass-wash: #173325; --fail: #ff8a80; --fail-wash: #45201d;
    --warn: #e6b455; --warn-wash: #3a2d12; --error: #d3a4e8; --error-wash: #35213f;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif;
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%;
}
main, header.top, footer { max-width: 72rem; margin: 0 auto; padding: 0 1.25rem; }
header.top { padding-top: 2.5rem; }
.brand { font-weight: 650; letter-spacing: .02em; color: var(--soft); margin: 0; }
h1 { font-size: clamp(1.5rem, 1.1rem + 1.8vw, 2.25rem); line-height: 1.2; margin: .25rem 0 .5rem; text-wrap: balance; }
h2 { font-size: 1.3rem; margin: 3rem 0 .75rem; }
h3 { font-size: 1.02rem; margin: 1.75rem 0 .4rem; }
h4 { font-size: .8rem; margin: 1.4rem 0 .35rem; color: var(--soft); font-weight: 600; letter-spacing: .04em;
  text-transform: uppercase; }
p { margin: .4rem 0; max-width: 75ch; overflow-wrap: anywhere; }
.lead { color: var(--soft); font-size: 1.05rem; margin-bottom: 1.25rem; }
a { color: var(--accent); text-underline-offset: .15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
code, pre { font-family: var(--mono); font-size: .86em; overflow-wrap: anywhere; }
pre { background: var(--wash); padding: .6rem .8rem; border-radius: 6px; white-space: pre-wrap; margin: .35rem 0;
  max-height: 22rem; overflow: auto; }
.soft { color: var(--soft); }
ul.plain { list-style: none; padding: 0; margin: 0; }
ul.facts { margin: .3rem 0; padding-left: 1.15rem; max-width: 85ch; overflow-wrap: anywhere; }
ul.facts li { margin: .15rem 0; }

dl.ran { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .75rem 1.75rem; margin: 0;
  padding: 1rem 0; border-block: 1px solid var(--line); }
dl.ran .wide { grid-column: 1 / -1; }
dt { color: var(--soft); font-size: .82rem; }
dd { margin: 0; overflow-wrap: anywhere; }

.chip { display: inline-flex; align-items: center; gap: .45em; border-radius: 5px; padding: .1em .55em .1em .15em;
  font-weight: 550; white-space: nowrap; line-height: 1.5; text-decoration: none; color: inherit;
  background: var(--wash); }
.chip b { display: inline-block; width: 1.5em; text-align: center; border-radius: 4px; font-weight: 700;
  font-size: .88em; color: var(--card); background: var(--soft); }
.chip small { font-weight: 400; font-size: .86em; color: var(--soft); }
.chip.passed b { background: var(--pass); } .chip.passed { background: var(--pass-wash); }
.chip.passed.red b { background: transparent; color: var(--fail); box-shadow: inset 0 0 0 1.5px var(--fail); }
.chip.failed b { background: var(--fail); } .chip.failed { background: var(--fail-wash); color: var(--fail); }
.chip.inconclusive b, .chip.known b { background: var(--warn); }
.chip.inconclusive, .chip.known { background: var(--warn-wash); }
.chip.error b { background: var(--error); } .chip.error { background: var(--error-wash); }
.chip.shown.red b { background: var(--fail); } .chip.shown.green b { background: var(--pass); }
.chip.nothing, .chip.skipped { background: transparent; }
a.chip:hover { box-shadow: 0 0 0 1.5px var(--accent); }

.scroll { overflow: auto; max-width: 100%; border: 1px solid var(--line); border-radius: 8px; margin: .4rem 0;
  --more: color-mix(in srgb, var(--ink) 26%, transparent);
  background: linear-gradient(to right, var(--card) 55%, transparent) left / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--card) 55%, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--more), transparent) left / .8rem 100% no-repeat scroll,
    linear-gradient(to left, var(--more), transparent) right / .8rem 100% no-repeat scroll, var(--card); }
.scroll.tall { max-height: 27rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; padding: .42rem .8rem; vertical-align: top; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 550; font-size: .82rem; white-space: nowrap;
  position: sticky; top: 0; background: var(--card); box-shadow: inset 0 -1px 0 var(--line); }
tbody th { font-weight: 550; white-space: nowrap; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.keep { white-space: nowrap; }
td small { font-size: .9em; } td small.fault { display: block; color: var(--soft); }
td.says { min-width: 14rem; width: 40%; overflow-wrap: anywhere; }
td .chip + .chip { margin-left: .3rem; }
tr.lost td { background: color-mix(in srgb, var(--fail-wash) 45%, transparent); }
tr.left-out td { text-align: center; color: var(--soft); font-style: italic; }
tr.group th { background: var(--wash); font-size: .88rem; white-space: normal; }
tr.group .soft { font-weight: 400; }
table.numbers th.n, table.numbers td { padding-inline: .5rem; }
table.numbers thead th { white-space: normal; vertical-align: bottom; }
table.numbers td.keep { position: sticky; left: 0; background: var(--card); padding-left: .8rem; }
tbody th[scope="row"] { position: sticky; left: 0; background: var(--card); }
table.small { width: auto; }
table.small th, table.small td { padding: .22rem .5rem; }
table.small thead th { vertical-align: bottom; text-align: left; }
table.small thead th + th span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 15rem; }
.chip.small { padding: .1em; }
.violated { display: block; font-size: .82rem; color: var(--soft); margin-top: .15rem; }

.attention > li { border-left: 4px solid var(--fail); background: var(--card); padding: .75rem 1rem; margin: .6rem 0;
  border-radius: 0 8px 8px 0; box-shadow: inset 0 0 0 1px var(--line); }
.attention > li.inconclusive { border-color: var(--warn); } .attention > li.error { border-color: var(--error); }
.attention > li.unfinished { border-color: var(--soft); }

.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 2rem; }
figure { margin: 1.4rem 0 .5rem; } .plots figure { margin-top: 0; }
figcaption { font-weight: 550; font-size: .9rem; margin-bottom: .4rem; }
svg { display: block; width: 100%; }
.bar-group { font-size: .82rem; color: var(--soft); margin-top: .5rem; overflow-wrap: anywhere; }
.bar { display: grid; grid-template-columns: minmax(5rem, 9rem) 1fr 5.5rem; gap: .6rem; align-items: center;
  font-size: .88rem; }
.bar svg { height: .8rem; fill: var(--bar); }
.bar-name { overflow-wrap: anywhere; line-height: 1.25; padding: .1rem 0; }
.bar-says { text-align: right; }
.growth { display: grid; grid-template-columns: 1fr auto; gap: .1rem .5rem; font-size: .8rem; color: var(--soft);
  padding: .6rem .8rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card); max-width: 48rem; }
.growth svg { grid-column: 1 / -1; height: 8rem; overflow: visible; }
.growth .top { grid-column: 1 / -1; }
.growth .line { fill: none; stroke: var(--accent); stroke-width: 2; vector-effect: non-scaling-stroke; }
.growth .area { fill: var(--bar); opacity: .22; }
.growth .mark { stroke: var(--soft); stroke-width: 1; vector-effect: non-scaling-stroke; opacity: .7; }
.growth .mark.fault { stroke: var(--fail); opacity: .8; }
.growth .mark.stop { stroke: var(--warn); stroke-width: 2; opacity: 1; stroke-dasharray: 4 3; }
.growth .mark.turn { stroke: var(--soft); stroke-dasharray: 2 3; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: 0; margin: .35rem 0;
  font-size: .82rem; color: var(--soft); }
.legend i { display: inline-block; width: 3px; height: .85em; margin-right: .45em; vertical-align: -.08em;
  background: var(--soft); }
.legend i.fault { background: var(--fail); opacity: .6; } .legend i.stop { background: var(--warn); }

details.run { border: 1px solid var(--line); border-radius: 10px; background: var(--paper); margin: .6rem 0; }
details.run[open] { background: var(--card); }
details.run > summary { cursor: pointer; padding: .7rem 1rem; display: flex; flex-wrap: wrap; gap: .25rem .8rem;
  align-items: baseline; list-style-position: inside; }
details.run > summary::-webkit-details-marker { display: none; }
details.run > summary::before { content: "▸"; color: var(--soft); width: .8em; }
details.run[open] > summary::before { content: "▾"; }
details.run > summary .why { flex-basis: 100%; color: var(--soft); padding-left: 1.6em; overflow-wrap: anywhere; }
details.run > .inside { padding: 0 1rem 1.2rem 1rem; scroll-margin-top: 7rem; }
details.run > .inside:target { animation: here 2s; }
@keyframes here { from { background: var(--warn-wash); } }
details.more > summary { cursor: pointer; color: var(--soft); margin: .5rem 0; }
dl.stack { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.2rem; margin: .3rem 0; }
dl.stack > div { display: contents; }
.stats { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: .2rem 0 .8rem; padding: .7rem 0;
  border-block: 1px solid var(--line); }
.stats div { min-width: 5.5rem; } .stats dd { font-size: 1.1rem; font-weight: 550; }
.stats dd small { font-weight: 400; color: var(--soft); font-size: .8rem; display: block; }
footer { margin: 4rem auto 2rem; color: var(--soft); font-size: .85rem; }

@media (max-width: 62rem) {
  table.numbers { font-size: .86rem; }
  table.numbers th.n, table.numbers td { padding-inline: .4rem; }
}
@media (max-width: 40rem) {
  body { font-size: 14.5px; }
  header.top { padding-top: 1.25rem; }
  th, td, table.numbers td.keep { padding: .38rem .55rem; }
  td .chip:has(small) { flex-wrap: wrap; white-space: normal; row-gap: 0; min-width: 5rem; }
  .bar { grid-template-columns: 5.5rem 1fr 4.5rem; }
  details.run > .inside { padding: 0 .7rem 1rem; }
}
@media (prefers-reduced-motion: reduce) { details.run > .inside:target { animation: none; } }
@media print {
  :root { --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --wash: #f2f2f2; }
  body { font-size: 10pt; }
  .scroll, .scroll.tall, pre { overflow: visible; max-height: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  details.run, tr, figure, li { break-inside: auto; } tr, figure { break-inside: avoid; }
  thead th { position: static; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""
