"""Words and looks of the demo's report; `tercet.report` fills them in."""

BODY = """<h1>A year in the shop</h1>
<p>A simulated shop sells bicycles and helmets, skis and snowboards, and more. {visits:,} visitors come in a
year; each is shown one of {offered} products and buys it or not. Demand follows seasons that are never on
time, products come and go, and which families move together depends on the visitor. Every policy studies
the same {years} logged years, then plays the same year and learns only from what it showed itself.</p>
<ul class=headlines>{headlines}</ul>
{table}
<p class=small>Sales missed (regret): the chance of a sale of the best product on offer less that of the
product shown, summed over the year. ± is a 95 % interval over seeds; “more than C3” compares within each
seed. The best fixed rule of hindsight knows each visitor's kind and ranks the families once for each kind,
with the year's true demand in hand; it shows any product of the highest-ranked family on offer.</p>

<h2>Regret through the year</h2>
<p>Lower is better, and a flat stretch means that the right products are shown. Lines are means over
{seeds}; each band is the 95 % interval of that mean.</p>
{policies}{regret}

<h2>What visitors want</h2>
<p>The true chance that a product of usual quality sells. Coupled families share a hue: bicycles and helmets
rise and fall together, so do skis and snowboards. Rain jackets follow the bicycles of commuters, but the
tents of sports people. No calendar knows that this winter comes {late:.0f} days late, nor the strike of
{strike} and the training fashion of {fashion} (dotted lines).</p>
{lines}{demand}
<p>Products on sale: a dot is an arrival, the end of a line a departure. Most products stay for too few
visits to be learned one by one.</p>
{shelf}

<h2>What C3 shows</h2>
<p>Above, the family of the best product on offer, which only the simulation knows; below, the family that
C3 showed. Shares of visits in two-week steps: the closer the two pictures, the better.</p>
{areas}{shares}

<h2>What C3 has learned</h2>
<p>Each point is a product, placed by C3 for a typical visitor, from its noisy description alone; what lies
within about one bandwidth shares its evidence. Coupled products should lie together: those of coupled
families are {near:.1f} bandwidths apart on average, others {far:.1f}.</p>
{points}<div class=pair>{embedding}</div>
<footer>{footer}</footer>"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tercet demo: a year in the shop</title>
<style>
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
  color: #222; background: #fff; max-width: 920px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 28px; font-weight: 600; margin: 8px 0; }
h2 { font-size: 20px; font-weight: 600; margin: 44px 0 4px; }
p { margin: 6px 0; max-width: 72ch; }
.headlines { background: #f5f6f7; border-radius: 8px; padding: 14px 20px 14px 36px; margin: 18px 0; }
.headlines li:first-child { font-weight: 600; }
.chips { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 14px; margin: 8px 0 0; }
.chips span { white-space: nowrap; }
.chips i { display: inline-block; margin-right: 6px; vertical-align: middle; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 5px 14px 5px 0; border-bottom: 1px solid #e6e6e6; white-space: nowrap; }
th { font-weight: 600; font-size: 14px; color: #555; }
th:first-child, td:first-child { text-align: left; }
td .chips { margin: 0; font-size: 16px; }
.small, footer { font-size: 14px; color: #666; }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; }
@media (max-width: 720px) { .pair { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 560px) {
  body { padding: 12px 12px 32px; }
  th, td { padding-right: 8px; font-size: 14px; }
  th { white-space: normal; vertical-align: bottom; }
  td .chips { font-size: 14px; }
  td .chips span { white-space: normal; }
}
footer { margin-top: 40px; border-top: 1px solid #e6e6e6; padding-top: 10px; }
</style>
<script>{script}</script></head>
<body>
{body}
<script>
// A figure must take the width it is left with, also when the phone is turned.
const fit = new ResizeObserver(all => all.forEach(one => Plotly.Plots.resize(one.target.firstElementChild)));
document.querySelectorAll(".plotly-graph-div").forEach(plot => fit.observe(plot.parentElement));
</script>
</body></html>
"""
