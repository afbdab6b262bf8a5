/* The table of suspects, drawn page by page, with one active row. */

const PAGE_SIZE = 50;
const COLUMNS = {
  row: "Row",
  id: "Id",
  text: "Text",
  observed: "Observed",
  proposed: "Proposed",
  probability: "Probability wrong",
};

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

/* Only a checked row is certain. */
function probabilityText(value, checked) {
  if (checked) return "checked";
  return value > 0.9995 ? "> 0.999" : value.toFixed(3);
}

function grouped(number) {
  return number.toLocaleString("en");
}

class SuspectTable {
  constructor(report, decisions, view) {
    Object.assign(this, { report, decisions, view, page: 0, active: view.listed[0] });
    this.columns = Object.keys(COLUMNS).filter((column) => report.suspects[column] !== null);
    this.checked = new Set(report.suspects.checked);
    this.body = byId("rows");
  }

  get nPages() {
    return Math.max(1, Math.ceil(this.view.listed.length / PAGE_SIZE));
  }

  /* Show the first page, after a change of filters or order. */
  restart() {
    this.view.update();
    this.page = 0;
    this.active = this.view.listed[0];
    this.draw();
  }

  turnTo(page) {
    this.page = Math.min(Math.max(page, 0), this.nPages - 1);
    this.active = this.view.listed[this.page * PAGE_SIZE];
    this.draw();
  }

  sortBy(column) {
    this.view.sortBy(column);
    this.restart();
  }

  /* Make the suspect `step` places further down active, if there is one. */
  move(step) {
    this.activate(this.view.listed[(this.view.places.get(this.active) ?? -1) + step]);
  }

  activate(index, focus = true) {
    const place = this.view.places.get(index);
    if (place === undefined) return;
    const before = this.active;
    this.active = index;
    if (Math.floor(place / PAGE_SIZE) === this.page) [before, index].forEach((each) => this.paint(each));
    else this.drawPage(Math.floor(place / PAGE_SIZE));
    if (focus) this.rowOf(index).focus();
  }

  /* Decide, or undo the same decision; `advance` makes the next suspect active. */
  decide(index, decision, advance = false) {
    const next = advance ? this.view.listed[this.view.places.get(index) + 1] : index;
    this.decisions.decide(index, !advance && this.decisions.of(index) === decision ? "" : decision);
    this.afterDecision(index, next ?? index, advance || !this.body.contains(document.activeElement));
  }

  undo() {
    const index = this.decisions.undo();
    if (index !== undefined) this.afterDecision(index, index, true);
  }

  /* A filter by decision may hide the suspect: then the one in its place becomes active. */
  afterDecision(index, next, focus) {
    if (this.view.filters.decision !== "") {
      this.refresh(next, this.view.places.get(index) ?? 0);
      this.rowOf(this.active)?.focus();
    } else {
      this.paint(index);
      this.activate(next, focus);
    }
    this.tellProgress();
  }

  /* Filter again, and make this suspect active, or the one in that place. */
  refresh(index, place) {
    this.view.update();
    const { listed, places } = this.view;
    this.active = places.has(index) ? index : listed[Math.min(place, listed.length - 1)];
    this.drawPage(Math.floor((places.get(this.active) ?? 0) / PAGE_SIZE));
  }

  draw() {
    this.drawHead();
    this.drawPage(this.page);
    this.tellProgress();
  }

  drawHead() {
    const { column, descending } = this.view.sorting;
    const direction = descending ? "descending" : "ascending";
    const heads = this.columns.map((name) => this.newHead(name, name === column ? direction : "none"));
    heads.push(element("th", { role: "columnheader", scope: "col", className: "decision" }, "Decision"));
    byId("columns").replaceChildren(...heads);
    byId("sort-choice").value = `${column} ${direction}`;
  }

  newHead(name, direction) {
    const button = element("button", { type: "button", onclick: () => this.sortBy(name) }, COLUMNS[name]);
    return element("th", { role: "columnheader", scope: "col", className: name, "aria-sort": direction }, button);
  }

  drawPage(page) {
    this.page = page;
    const shown = this.view.listed.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE);
    this.body.replaceChildren(...shown.map((index) => this.newRow(index)));
    shown.forEach((index) => this.paint(index));
    this.tellPlace(shown.length);
  }

  newRow(index) {
    const cells = this.columns.map((column) => this.newCell(column, index));
    const buttons = ["accept", "reject"].map((decision) => this.newButton(index, decision));
    cells.push(element("td", { role: "cell", className: "decision" }, ...buttons));
    const className = index < this.report.n_suspects ? "act" : "";
    return element("tr", { role: "row", "data-index": index, className }, ...cells);
  }

  newCell(column, index) {
    const value = this.report.suspects[column][index];
    return element("td", { role: "cell", className: column }, ...this.content(column, value, index));
  }

  content(column, value, index) {
    if (column === "row") return [String(value)];
    if (column === "probability") {
      const text = probabilityText(value, this.checked.has(index));
      return [element("span", { className: "value" }, text), this.newGauge(value)];
    }
    if (column === "id" || column === "text") return [element("div", { dir: "auto" }, value)];
    return [element("span", { className: "label", dir: "auto" }, this.report.classes[value])];
  }

  newGauge(value) {
    const gauge = element("span", { className: "gauge", "aria-hidden": "true" });
    gauge.style.setProperty("--share", value);
    return gauge;
  }

  newButton(index, decision) {
    const { suspects, classes } = this.report;
    const [word, side] = decision === "accept" ? ["Accept", "proposed"] : ["Reject", "observed"];
    const name = `${word}: row ${suspects.row[index]} is ${classes[suspects[side][index]]}`;
    const onclick = () => this.decide(index, decision);
    return element("button", { type: "button", className: decision, "aria-label": name, onclick }, word);
  }

  rowOf(index) {
    return this.body.querySelector(`tr[data-index="${index}"]`);
  }

  /* Show the decision on a row, and whether the row is active. */
  paint(index) {
    const row = this.rowOf(index);
    if (!row) return;
    const active = index === this.active;
    row.tabIndex = active ? 0 : -1;
    row.classList.toggle("active", active);
    row.dataset.decision = this.decisions.of(index);
    for (const button of row.querySelectorAll(".decision button")) {
      button.tabIndex = active ? 0 : -1;
      button.setAttribute("aria-pressed", String(button.className === this.decisions.of(index)));
    }
  }

  tellPlace(nShown) {
    const first = this.page * PAGE_SIZE + 1;
    const total = this.view.listed.length;
    const range = `${grouped(first)}–${grouped(first + nShown - 1)}`;
    const text = total ? `${range} of ${grouped(total)}` : "0 of 0";
    for (const place of document.querySelectorAll(".place")) place.textContent = text;
    for (const button of document.querySelectorAll("[data-turn]")) {
      const page = this.page + Number(button.dataset.turn);
      button.disabled = page < 0 || page >= this.nPages;
    }
    byId("nothing").hidden = total > 0;
    const any = this.report.suspects.row.length > 0;
    byId("nothing").textContent = any ? "No row matches these filters." : "No label is suspect.";
  }

  tellProgress() {
    const [accepted, rejected] = ["accept", "reject"].map((decision) => this.decisions.count(decision));
    const left = this.report.suspects.row.length - accepted - rejected;
    const counts = Object.entries({ accepted, rejected, undecided: left }).map(([word, n]) => `${grouped(n)} ${word}`);
    byId("progress").textContent = counts.join(", ");
    byId("export").disabled = accepted + rejected === 0;
    byId("saved").textContent = this.decisions.isSaved
      ? "Decisions are saved in this browser."
      : "This browser does not save decisions: export them before you close the page.";
  }
}
