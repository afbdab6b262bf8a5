/* Charts, drawn as SVG for the width there is, so that their words keep their size. */

const MARGIN = { top: 10, right: 12, bottom: 34, left: 12 };

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/* Draw now and whenever the width changes. */
function drawAlways(holder, draw) {
  new ResizeObserver(() => holder.clientWidth && draw(holder.clientWidth)).observe(holder);
}

function scale(from, to, low, high) {
  return (value) => low + ((value - from) / (to - from)) * (high - low);
}

function path(points) {
  return points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

function percent(share) {
  const digits = share < 0.01 || share > 0.99 ? Math.max(0, Math.ceil(-Math.log10(Math.min(share, 1 - share)) - 2.000001)) : 0;
  return `${(100 * share).toFixed(digits)}%`;
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

function scoreAxis(panel, name, x, base, middle) {
  const marks = panel.marks.flatMap((mark) => {
    const at = x(Math.log(mark / (1 - mark)));
    return [svg("line", { class: "tick", x1: at, x2: at, y1: base, y2: base + 4 }), svg("text", { x: at, y: base + 16, "text-anchor": "middle" }, percent(mark))];
  });
  const title = svg("text", { class: "title", x: middle, y: base + 31, "text-anchor": "middle" }, `P(truly ${shortened(name)}), from the row alone`);
  return svg("g", {}, svg("line", { class: "axis", x1: x(panel.low), x2: x(panel.high), y1: base, y2: base }), ...marks, title);
}

function shortened(name) {
  return name.length > 24 ? `${name.slice(0, 23)}…` : name;
}

function drawScores(holder, panel, name, width) {
  const height = 230;
  const most = Math.max(1, ...panel.counts.flat(), ...panel.expected.flat());
  const x = scale(panel.low, panel.high, MARGIN.left, width - MARGIN.right);
  const y = scale(0, most, height - MARGIN.bottom, MARGIN.top);
  const drawn = [scoreSeries(panel, 0, x, y), scoreSeries(panel, 1, x, y), scoreAxis(panel, name, x, y(0), width / 2)];
  if (panel.low < 0 && panel.high > 0) drawn.push(svg("line", { class: "even", x1: x(0), x2: x(0), y1: MARGIN.top, y2: y(0) }));
  const said = `Rows by the probability of ${name}, by observed label: counts and what the flip rates lead to expect.`;
  holder.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said }, ...drawn));
}

function newPanel(panel, classes) {
  const name = classes[panel.class];
  const other = classes.length === 2 ? `labelled ${classes[1 - panel.class]}` : "labelled otherwise";
  const legend = element(
    "p",
    { className: "legend" },
    ...[[0, other], [1, `labelled ${name}`]].map(([series, words]) => element("span", {}, element("i", { className: `swatch series-${series}` }), words)),
  );
  const chart = element("div", { className: "chart" });
  drawAlways(chart, (width) => drawScores(chart, panel, name, width));
  return element("div", { className: "panel" }, legend, chart);
}

function ticksBetween(low, high) {
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((each) => (high - low) / each <= 5) ?? 0.5;
  const ticks = [];
  for (let tick = Math.ceil(low / step); tick * step <= high; tick++) ticks.push(tick * step);
  return { ticks, digits: step < 0.01 ? 1 : 0 };
}

/* Round numbers of checked rows whose marks do not touch. */
function checkedTicks(n, x) {
  const round = [];
  for (let power = 1; power <= n; power *= 10) round.push(power, 2 * power, 5 * power);
  const ticks = [0];
  for (const tick of round) if (tick < n && x(tick) - x(ticks.at(-1)) > 46 && x(n) - x(tick) > 46) ticks.push(tick);
  return [...ticks, n];
}

class Outlook {
  constructor({ outlook, n_suspects }) {
    Object.assign(this, outlook, { n: outlook.checked.at(-1), nSuspects: n_suspects });
    this.place = outlook.checked.indexOf(n_suspects);
    this.choice = 0;
  }

  get now() {
    return this.accuracy[0][0];
  }

  get chosen() {
    return this.accuracy[this.choice][this.place];
  }

  words() {
    const checked = this.checked[this.place];
    const efforts = [];
    if (checked) efforts.push(`the ${grouped(checked)} worst labels checked`);
    if (this.choice) efforts.push(`${this.growth[this.choice]} times as many rows`);
    const gain = this.gain_said[this.choice][this.place];
    return efforts.length ? `with ${efforts.join(" and ")}: ${gain} points` : "now";
  }

  draw(holder, width) {
    const height = 250;
    const left = 44;
    const [low, high] = [this.now, Math.max(...this.accuracy.map((line) => line.at(-1)))];
    const margin = Math.max(0.08 * (high - low), 0.002);
    const across = scale(0, 1, left, width - 24);
    const x = (checked) => across(Math.sqrt(checked / this.n)); // small numbers are what one can do
    const y = scale(low - margin, Math.min(1, high + margin), height - MARGIN.bottom, MARGIN.top);
    const lines = [...new Set([0, this.choice])].map((choice) => this.line(choice, x, y));
    const drawn = [...this.axes(x, y, low - margin, Math.min(1, high + margin), width, height), ...lines, this.marker(x, y, height - MARGIN.bottom)];
    const said = `Accuracy against labels checked: from ${this.accuracy_said[0][0]} now to ${this.accuracy_said[0].at(-1)} with every label checked.`;
    holder.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said }, ...drawn));
  }

  line(choice, x, y) {
    const points = this.accuracy[choice].map((value, place) => [x(this.checked[place]), y(value)]);
    return svg("path", { class: choice === this.choice ? "curve chosen" : "curve", d: path(points) });
  }

  marker(x, y, base) {
    const [at, high] = [x(this.checked[this.place]), y(this.chosen)];
    return svg("g", { class: "marker" }, svg("line", { class: "even", x1: at, x2: at, y1: high, y2: base }), svg("circle", { cx: at, cy: high, r: 6 }));
  }

  axes(x, y, low, high, width, height) {
    const base = height - MARGIN.bottom;
    const { ticks, digits } = ticksBetween(low, high);
    const across = ticks.flatMap((tick) => [
      svg("line", { class: "grid", x1: x(0), x2: width - 24, y1: y(tick), y2: y(tick) }),
      svg("text", { x: x(0) - 6, y: y(tick) + 4, "text-anchor": "end" }, `${(100 * tick).toFixed(digits)}%`),
    ]);
    const up = checkedTicks(this.n, x).map((tick) => svg("text", { x: x(tick), y: base + 16, "text-anchor": "middle" }, grouped(tick)));
    const title = svg("text", { class: "title", x: (x(0) + x(this.n)) / 2, y: base + 31, "text-anchor": "middle" }, "worst labels checked");
    return [...across, ...up, title];
  }
}

function startOutlook(report) {
  const outlook = new Outlook(report);
  const [slider, choice, chart] = [byId("checked"), byId("growth"), byId("outlook-chart")];
  const draw = () => chart.clientWidth && outlook.draw(chart, chart.clientWidth);
  const tell = () => {
    const checked = grouped(outlook.checked[outlook.place]);
    byId("checked-count").textContent = checked;
    slider.setAttribute("aria-valuetext", `${checked} labels`);
    byId("outlook-answer").replaceChildren(element("b", {}, outlook.accuracy_said[outlook.choice][outlook.place]), ` ${outlook.words()}`);
    draw();
  };
  choice.append(...outlook.growth.map((times, place) => element("option", { value: place }, place ? `${times} times as many` : "as now")));
  slider.max = outlook.checked.length - 1;
  slider.value = outlook.place;
  slider.addEventListener("input", () => { outlook.place = Number(slider.value); tell(); });
  choice.addEventListener("change", () => { outlook.choice = Number(choice.value); tell(); });
  tell();
  drawAlways(chart, draw);
}
