/* Heat maps of many classes: small cells, with the words for the current cell below. */

const HEAT_STEPS = 10; // shades, as in style.css
const MOST_PAIRS_LISTED = 10; // of classes that are confused most, as text
const MOST_COUNTS_SHOWN = 20; // classes up to which cells have room for a number
const SMALL_CELLS = 30; // classes from which cells are small

const HEAT_KEYS = {
  ArrowRight: (row, column) => [row, column + 1],
  ArrowLeft: (row, column) => [row, column - 1],
  ArrowDown: (row, column) => [row + 1, column],
  ArrowUp: (row, column) => [row - 1, column],
  Home: (row) => [row, 0],
  End: (row, _, last) => [row, last],
};

/* The shade of a share of the largest value: its square root, so that small values are visible. */
function shade(share) {
  return Math.round(HEAT_STEPS * Math.sqrt(share));
}

class HeatMap {
  /* `values` has a list for each row; `describe` returns the words for a cell, `open` shows its rows. */
  constructor(holder, { classes, corner, values, text, describe, open }) {
    Object.assign(this, { classes, values, text, describe, open });
    this.largest = Math.max(...values.flat()) || 1;
    this.words = element("p", { className: "heat-words", "aria-live": "polite" }, "Point at a cell, or move with the arrow keys.");
    this.table = element("table", { className: "heat-map", role: "grid" });
    this.table.setAttribute("aria-label", corner);
    if (classes.length >= SMALL_CELLS) this.table.classList.add("small");
    this.table.append(this.newHead(corner), this.newBody());
    this.cells = [...this.table.querySelectorAll("td")];
    this.cells[0].tabIndex = 0;
    const scroll = element("div", { className: "scroll" }, this.table);
    holder.append(scroll, this.words);
    this.table.addEventListener("pointerover", (event) => this.tell(event.target.closest("td")));
    this.table.addEventListener("focusin", (event) => this.tell(event.target.closest("td")));
    this.table.addEventListener("click", (event) => this.act(event.target.closest("td")));
    this.table.addEventListener("keydown", (event) => this.press(event));
  }

  newHead(corner) {
    const heads = this.classes.map((name) => element("th", { scope: "col", title: name }, element("span", { dir: "auto" }, shortened(name))));
    return element("thead", {}, element("tr", {}, element("th", { className: "corner", scope: "col" }, corner), ...heads));
  }

  newBody() {
    const rows = this.values.map((line, row) => {
      const cells = line.map((value, column) => this.newCell(value, row, column));
      const head = element("th", { scope: "row", title: this.classes[row] }, element("span", { dir: "auto" }, shortened(this.classes[row])));
      return element("tr", {}, head, ...cells);
    });
    return element("tbody", {}, ...rows);
  }

  newCell(value, row, column) {
    const side = row === column ? "right" : "noise";
    const className = value ? `${side} heat-${shade(value / this.largest)}` : "empty";
    const shown = value && this.classes.length <= MOST_COUNTS_SHOWN ? this.text(value) : "";
    const cell = element("td", { className, tabIndex: -1 }, shown);
    cell.setAttribute("aria-label", this.describe(row, column));
    return cell;
  }

  placeOf(cell) {
    const place = this.cells.indexOf(cell);
    return [Math.floor(place / this.classes.length), place % this.classes.length];
  }

  tell(cell) {
    if (cell) this.words.textContent = this.describe(...this.placeOf(cell));
  }

  act(cell) {
    if (cell) this.open(...this.placeOf(cell));
  }

  press(event) {
    const cell = event.target.closest("td");
    if (!cell || !isPlain(event)) return;
    const isAction = event.key === "Enter" || event.key === " ";
    if (!isAction && !Object.hasOwn(HEAT_KEYS, event.key)) return;
    event.preventDefault();
    if (isAction) this.act(cell);
    else this.moveTo(...HEAT_KEYS[event.key](...this.placeOf(cell), this.classes.length - 1));
  }

  moveTo(row, column) {
    const inside = (place) => Math.min(Math.max(place, 0), this.classes.length - 1);
    const next = this.cells[inside(row) * this.classes.length + inside(column)];
    this.cells.forEach((cell) => (cell.tabIndex = cell === next ? 0 : -1));
    next.focus();
  }
}

function confusionOf({ suspects, classes }) {
  const counts = classes.map(() => classes.map(() => 0));
  suspects.observed.forEach((observed, index) => counts[observed][suspects.proposed[index]]++);
  return counts;
}

/* Show the suspects of one label and one proposed class. */
function showSuspects(table, observed, proposed) {
  resetFilters(table);
  for (const [side, code] of Object.entries({ observed, proposed })) {
    byId(`filter-${side}`).value = code;
    table.view.filters[side] = String(code);
  }
  table.restart();
  location.hash = "#suspects";
}

/* The pairs of classes that are confused most, for readers who do not see the map. */
function newPairs(counts, classes, open) {
  const pairs = counts.flatMap((line, observed) => line.map((count, proposed) => ({ count, observed, proposed })));
  const largest = pairs.filter(({ count }) => count).sort((one, other) => other.count - one.count);
  const lines = largest.slice(0, MOST_PAIRS_LISTED).map(({ count, observed, proposed }) => {
    const words = [element("b", { dir: "auto" }, classes[observed]), " → ", element("b", { dir: "auto" }, classes[proposed])];
    const button = element("button", { type: "button", onclick: () => open(observed, proposed) }, ...words, `: ${grouped(count)}`);
    return element("li", {}, button);
  });
  return element("ol", { className: "confused" }, ...lines);
}

function startHeatMaps(report, table) {
  const { classes, transition } = report;
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
  const counts = confusionOf(report);
  const open = (observed, proposed) => counts[observed][proposed] && showSuspects(table, observed, proposed);
  const suspects = (count) => (count === 1 ? "1 suspect" : `${grouped(count)} suspects`);
  byId("confused").append(newPairs(counts, classes, open));
  new HeatMap(byId("confusion-map"), {
    classes,
    corner: "label ↓ proposed →",
    values: counts,
    text: grouped,
    describe: (row, column) => `Label ${classes[row]}, proposed ${classes[column]}: ${suspects(counts[row][column])}`,
    open,
  });
  new HeatMap(byId("transition-map"), {
    classes,
    corner: "true class ↓ label →",
    values: transition.rates,
    text: percent,
    describe: (row, column) => {
      const error = transition.errors[row][column];
      const spread = error ? ` ± ${percent(error)}` : "";
      return `True class ${classes[row]}, label ${classes[column]}: ${percent(transition.rates[row][column])}${spread}`;
    },
    open: (row, column) => open(column, row),
  });
}
