"""Words and looks of the report; `tercet.paper.report` fills them in."""

BODY = """<header>
<h1>{title}</h1>
<p>{about}</p>
{banner}<p class="summary">{summary}</p>
{made}
</header>
<main>
<nav aria-labelledby="contents">
<h2 id="contents">Contents</h2>
<ol class="contents">
{contents}
</ol>
</nav>
<section class="all" aria-labelledby="claims">
<h2 id="claims">All claims</h2>
{filters}
<table class="claims">
<thead><tr><th scope="col">Item</th><th scope="col">{said}</th><th scope="col">We measured</th>\
<th scope="col">Verdict</th><th scope="col">Note</th></tr></thead>
<tbody>
{claims}
</tbody>
</table>
</section>
{items}
</main>"""

ITEM = """<section class="item" id="{name}" aria-labelledby="{name}.title">
<h2 id="{name}.title">{title}</h2>
<p class="where">{where}</p>
{problem}<table class="beside">
<thead><tr><th scope="col">{source}</th><th scope="col">Measured</th></tr></thead>
<tbody>
<tr><td data-label="{source}"><p>{says}</p></td><td data-label="Measured">{tally}</td></tr>
{claims}
</tbody>
</table>
{pictures}{deviations}{files}{made}<p class="back"><a href="#contents">Back to the contents</a></p>
</section>"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""

STYLE = """
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
  color: #222; background: #fff; max-width: 920px; margin: 0 auto; padding: 24px 16px 48px;
  overflow-wrap: break-word; }
h1 { font-size: 28px; font-weight: 600; line-height: 1.25; margin: 8px 0; }
h2 { font-size: 20px; font-weight: 600; line-height: 1.35; margin: 44px 0 4px; }
h3 { font-size: 14px; font-weight: 600; color: #555; margin: 20px 0 2px; }
p { margin: 6px 0; max-width: 72ch; }
a { color: #005a94; text-underline-offset: 2px; text-decoration-thickness: 1px; }
a:focus-visible, input:focus-visible + span { outline: 2px solid #005a94; outline-offset: 2px; }
code { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
.summary { background: #f5f6f7; border-radius: 8px; padding: 14px 20px; margin: 18px 0; font-weight: 600;
  max-width: none; }
.banner { border: 1px solid #b97a00; border-left-width: 6px; border-radius: 8px; background: #fff8e6;
  padding: 10px 16px; margin: 18px 0; max-width: none; }
.problem { border-left: 4px solid #8a8a8a; background: #f5f6f7; padding: 8px 14px; margin: 12px 0; }
.where { font-size: 14px; color: #666; margin: 0 0 12px; }

.made { display: flex; flex-wrap: wrap; gap: 2px 24px; font-size: 14px; color: #666; margin: 12px 0 0; }
.made div { display: flex; gap: 6px; min-width: 0; }
.made dt { color: #666; flex: none; }
.made dd { color: #333; margin: 0; min-width: 0; }

.verdict { display: inline-flex; align-items: baseline; gap: 5px; font-size: 14px; font-weight: 600;
  white-space: nowrap; }
.verdict .mark { display: inline-block; flex: none; width: 18px; font-size: 13px; line-height: 18px;
  border-radius: 50%; text-align: center; background: currentColor;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.verdict .mark b { color: #fff; }
.reproduced { color: #00694f; }
.reached { color: #00694f; }
.not-reproduced { color: #b03f00; }
.not-reached { color: #b03f00; }
.undecided { color: #6b5b00; }
.not-testable { color: #005a94; }
.not-measured { color: #666; }
.tally { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 0; padding: 0; list-style: none; }

.contents { margin: 8px 0; padding: 0; list-style: none; }
.contents > li { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 20px; padding: 6px 0;
  border-bottom: 1px solid #e6e6e6; align-items: baseline; }
.contents small { font-size: 14px; color: #666; margin-left: 6px; }
.contents .tally { justify-content: flex-end; }

table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 8px 16px 8px 0; border-bottom: 1px solid #e6e6e6; }
th { font-weight: 600; font-size: 14px; color: #555; }
th:last-child, td:last-child { padding-right: 0; }
td p { margin: 0 0 4px; max-width: none; }
.note { font-size: 14px; color: #666; margin: 0; }
td .note { margin: 4px 0 0; }
.claims { table-layout: fixed; font-size: 14px; line-height: 1.45; margin-top: 8px; }
.claims th, .claims td { box-sizing: border-box; }
.claims th:nth-child(1) { width: 10%; }
.claims th:nth-child(2), .claims th:nth-child(3) { width: 24%; }
.claims th:nth-child(4) { width: 13%; }
.claims .verdict { white-space: normal; }
.beside { table-layout: fixed; }
.beside th { width: 50%; }

.filters { border: 0; margin: 8px 0 0; padding: 0; display: none; }
.filters legend { float: left; font-size: 14px; color: #555; padding: 3px 12px 3px 0; }
.filters label { float: left; margin: 0 8px 8px 0; position: relative; cursor: pointer; }
.filters input { position: absolute; opacity: 0; inset: 0; margin: 0; cursor: pointer; }
.filters label > span { display: inline-flex; border: 1px solid #ccc; border-radius: 999px;
  padding: 2px 12px 2px 8px; font-size: 14px; }
.filters input:checked + span { border-color: #222; background: #f5f6f7; }
@supports selector(:has(a)) { .filters { display: flow-root; } }
@media screen {  /* what is printed is always the whole table */
  .all:has(#show-reproduced:checked) tbody tr:not(.is-reproduced),
  .all:has(#show-not-reproduced:checked) tbody tr:not(.is-not-reproduced),
  .all:has(#show-reached:checked) tbody tr:not(.is-reached),
  .all:has(#show-not-reached:checked) tbody tr:not(.is-not-reached),
  .all:has(#show-undecided:checked) tbody tr:not(.is-undecided),
  .all:has(#show-not-testable:checked) tbody tr:not(.is-not-testable),
  .all:has(#show-not-measured:checked) tbody tr:not(.is-not-measured) { display: none; }
}

figure { margin: 24px 0 0; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
figcaption { font-size: 14px; color: #555; margin: 8px auto 0; max-width: 88ch; }
.deviations, .files { font-size: 14px; margin: 4px 0; padding-left: 20px; max-width: 88ch; }
.files { display: flex; flex-wrap: wrap; gap: 2px 20px; padding: 0; list-style: none; }
.back { font-size: 14px; margin: 10px 0 0; }

@media screen and (max-width: 720px) {  /* paper is narrow too, but keeps its tables */
  body { padding: 12px 12px 32px; }
  h1 { font-size: 25px; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody, tr, td { display: block; }
  tr { padding: 10px 0; border-bottom: 1px solid #e6e6e6; }
  td { padding: 0 0 6px; border: 0; }
  td[data-label]::before { content: attr(data-label); display: block; font-size: 13px; font-weight: 600;
    line-height: 1.5; color: #666; }
  td:empty { display: none; }
  .claims { font-size: 15px; }
  .contents > li { grid-template-columns: minmax(0, 1fr); }
  .contents small { display: block; margin: 0; }
  .contents .tally { justify-content: flex-start; }
  .filters legend { float: none; padding: 0 0 4px; }
  .made { display: block; }
  figcaption { margin-top: 6px; }
}
@media print {
  @page { margin: 16mm 14mm; }
  body { font-size: 10.5pt; max-width: none; padding: 0; }
  a { color: inherit; text-decoration: none; }
  .filters, .back { display: none; }
  h2, h3, thead { break-after: avoid; }
  tr, figure, .summary, .banner, .contents > li { break-inside: avoid; }
  figure img { max-height: 200mm; object-fit: contain; }
  .claims { font-size: 8.5pt; }
  .claims .verdict { font-size: 8.5pt; }
}
"""
