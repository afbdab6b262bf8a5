/* Expected accuracy after checks and with more rows: a curve with a point that the user moves. */

const OUTLOOK_HEIGHT = 250;
const OUTLOOK_LEFT = 50; // pixels, wide enough for "100.0%"
const OUTLOOK_RIGHT = 24;
const TICK_STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
const TICK_ROOM = 46; // pixels between two numbers below the axis

function accuracyTicks(low, high) {
  const step = TICK_STEPS.find((each) => (high - low) / each <= 5) ?? 0.5;
  const ticks = [];
  for (let tick = Math.ceil(low / step); tick * step <= high; tick++) ticks.push(tick * step);
  return { ticks, digits: step < 0.01 ? 1 : 0 };
}

/* Round numbers of checked rows, with enough space between them. */
function checkedTicks(n, x) {
  const round = [];
  for (let power = 1; power <= n; power *= 10) round.push(power, 2 * power, 5 * power);
  const ticks = [0];
  for (const tick of round) {
    if (tick < n && x(tick) - x(ticks.at(-1)) > TICK_ROOM && x(n) - x(tick) > TICK_ROOM) ticks.push(tick);
  }
  return [...ticks, n];
}

class Outlook {
  constructor({ outlook, n_suspects }) {
    Object.assign(this, outlook, { n: outlook.checked.at(-1) });
    this.place = outlook.checked.indexOf(n_suspects);
    this.choice = 0;
  }

  effort() {
    const checked = this.checked[this.place];
    const efforts = [];
    if (checked) efforts.push(`the ${grouped(checked)} labels most likely to be wrong checked`);
    if (this.choice) efforts.push(`${this.growth[this.choice]} times as many rows`);
    const gain = this.gain_text[this.choice][this.place];
    return efforts.length ? `with ${efforts.join(" and ")}: ${gain} points` : "now";
  }

  /* The same range for all choices, so that curves can be compared. */
  range() {
    const [low, high] = [this.accuracy[0][0], Math.max(...this.accuracy.map((line) => line.at(-1)))];
    const margin = Math.max(0.08 * (high - low), 0.002);
    return [low - margin, Math.min(1, high + margin)];
  }

  draw(holder, width) {
    const base = OUTLOOK_HEIGHT - MARGIN.bottom;
    const across = scale(0, 1, OUTLOOK_LEFT, width - OUTLOOK_RIGHT);
    const x = (checked) => across(Math.sqrt(checked / this.n)); // more space for small numbers
    const y = scale(...this.range(), base, MARGIN.top);
    const curves = [...new Set([0, this.choice])].map((choice) => this.curve(choice, x, y));
    const drawn = [...this.axes(x, y, base), ...curves, ...this.marker(x, y, base)];
    const [now, best] = [this.accuracy_text[0][0], this.accuracy_text[0].at(-1)];
    const description = `Expected accuracy by checked labels: ${now} now, ${best} with all labels checked.`;
    holder.replaceChildren(picture(width, OUTLOOK_HEIGHT, description, drawn));
  }

  curve(choice, x, y) {
    const points = this.accuracy[choice].map((value, place) => [x(this.checked[place]), y(value)]);
    return svg("path", { class: choice === this.choice ? "curve chosen" : "curve", d: path(points) });
  }

  marker(x, y, base) {
    const [cx, cy] = [x(this.checked[this.place]), y(this.accuracy[this.choice][this.place])];
    return [upright("even", cx, cy, base), svg("circle", { class: "marker", cx, cy, r: 6 })];
  }

  axes(x, y, base) {
    const { ticks, digits } = accuracyTicks(...this.range());
    const across = ticks.flatMap((tick) => [
      level("grid", y(tick), x(0), x(this.n)),
      textAt(x(0) - 6, y(tick) + 4, `${(100 * tick).toFixed(digits)}%`, "end"),
    ]);
    const below = checkedTicks(this.n, x).map((tick) => textAt(x(tick), base + 16, grouped(tick)));
    return [...across, ...below, textAt((x(0) + x(this.n)) / 2, base + 31, "labels checked, most likely wrong first")];
  }
}

function showOutlook(outlook) {
  const checked = grouped(outlook.checked[outlook.place]);
  const accuracy = outlook.accuracy_text[outlook.choice][outlook.place];
  byId("checked-count").textContent = checked;
  byId("checked").setAttribute("aria-valuetext", `${checked} labels`);
  byId("outlook-answer").replaceChildren(element("b", {}, accuracy), ` ${outlook.effort()}`);
  outlook.draw(byId("outlook-chart"), byId("outlook-chart").clientWidth);
}

function startOutlook(report) {
  const outlook = new Outlook(report);
  const [slider, choice, chart] = [byId("checked"), byId("growth"), byId("outlook-chart")];
  const growths = outlook.growth.map((times, place) => (place ? `${times} times as many` : "as now"));
  choice.append(...growths.map((text, place) => element("option", { value: place }, text)));
  slider.max = outlook.checked.length - 1;
  slider.value = outlook.place;
  slider.addEventListener("input", () => {
    outlook.place = Number(slider.value);
    showOutlook(outlook);
  });
  choice.addEventListener("change", () => {
    outlook.choice = Number(choice.value);
    showOutlook(outlook);
  });
  drawAlways(chart, () => showOutlook(outlook));
}
