/* Charts as SVG, drawn for the available width so that text keeps its size. */

const MARGIN = { top: 10, right: 12, bottom: 34, left: 12 };
const SCORES_HEIGHT = 230;

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function picture(width, height, description, drawn) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description }, ...drawn);
}

function upright(kind, x, from, to) {
  return svg("line", { class: kind, x1: x, x2: x, y1: from, y2: to });
}

function level(kind, y, from, to) {
  return svg("line", { class: kind, x1: from, x2: to, y1: y, y2: y });
}

function textAt(x, y, text, anchor = "middle") {
  return svg("text", { x, y, "text-anchor": anchor }, text);
}

/* Draw when the holder is shown, after each change of its width, and before printing, which shows it. */
function drawAlways(holder, draw) {
  const redraw = () => holder.clientWidth && draw(holder.clientWidth);
  new ResizeObserver(redraw).observe(holder);
  addEventListener("beforeprint", redraw);
}

function scale(from, to, low, high) {
  return (value) => low + ((value - from) / (to - from)) * (high - low);
}

function path(points) {
  return points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

function shortened(name) {
  return name.length > 24 ? `${name.slice(0, 23)}…` : name;
}

/* Bars and line of one series of a panel of scores. */
function scoreSeries(panel, series, x, y) {
  const [counts, expected] = [panel.counts[series], panel.expected[series]];
  const step = (panel.high - panel.low) / counts.length;
  const bars = counts.map((count, place) => {
    const left = x(panel.low + place * step);
    const width = Math.max(0, x(panel.low + (place + 1) * step) - left - 0.5);
    return svg("rect", { x: left, y: y(count), width, height: y(0) - y(count) });
  });
  const fine = (panel.high - panel.low) / expected.length;
  const points = expected.map((value, place) => [x(panel.low + (place + 0.5) * fine), y(value)]);
  return svg("g", { class: `series-${series}` }, ...bars, svg("path", { d: path(points) }));
}

function scoreAxis(panel, name, x, base) {
  const marks = panel.marks.flatMap(([logOdds, probability]) => [
    upright("tick", x(logOdds), base, base + 4),
    textAt(x(logOdds), base + 16, probability),
  ]);
  const middle = x((panel.low + panel.high) / 2);
  const title = textAt(middle, base + 31, `P(true class is ${shortened(name)})`);
  return [level("axis", base, x(panel.low), x(panel.high)), ...marks, title];
}

function drawScores(holder, panel, name, width) {
  const most = Math.max(1, ...panel.counts.flat(), ...panel.expected.flat());
  const x = scale(panel.low, panel.high, MARGIN.left, width - MARGIN.right);
  const y = scale(0, most, SCORES_HEIGHT - MARGIN.bottom, MARGIN.top);
  const drawn = [scoreSeries(panel, 0, x, y), scoreSeries(panel, 1, x, y), ...scoreAxis(panel, name, x, y(0))];
  if (panel.low < 0 && panel.high > 0) drawn.push(upright("even", x(0), MARGIN.top, y(0)));
  const description = `Rows by predicted probability of ${name} and by label: counts, and expected counts.`;
  holder.replaceChildren(picture(width, SCORES_HEIGHT, description, drawn));
}

function newPanel(panel, classes) {
  const name = classes[panel.class];
  const other = classes.length === 2 ? `label ${classes[1 - panel.class]}` : "other label";
  const keys = [other, `label ${name}`].map((label, series) =>
    element("span", {}, element("i", { className: `swatch series-${series}` }), label),
  );
  const chart = element("div", { className: "chart" });
  drawAlways(chart, (width) => drawScores(chart, panel, name, width));
  return element("div", { className: "panel" }, element("p", { className: "legend" }, ...keys), chart);
}
