/* The table of suspects, drawn page by page, with one active row. */

const PAGE_SIZE = 50;
const COLUMNS = {
  row: "Row",
  id: "Id",
  image: "Image",
  text: "Text",
  cells: "Columns",
  observed: "Observed",
  proposed: "Proposed",
  probability: "Probability wrong",
};
const UNSORTED = ["image", "cells"]; // columns
const MOST_PAIRS = 12; // cells of a row in the list; its details have all
/* Widths of the columns on a wide page. */
const WIDTHS = {
  row: "4.8rem",
  id: "var(--name-width)",
  image: "6.2rem",
  text: "minmax(0, 1fr)",
  cells: "minmax(0, 1fr)",
  observed: "var(--label-width)",
  proposed: "var(--label-width)",
  probability: "6.8rem",
};
const DECISION_WIDTH = "11.4rem";

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
    this.values = { ...report.suspects, image: report.suspects.images };
    this.columns = Object.keys(COLUMNS).filter((column) => this.values[column] !== null);
    this.checked = new Set(report.suspects.checked);
    this.body = byId("rows");
    this.detail = new Detail(this);
    this.setWidths();
  }

  setWidths() {
    const hasContent = this.columns.includes("text") || this.columns.includes("cells");
    const widths = this.columns.map((column) => WIDTHS[column]);
    const table = this.body.parentElement;
    table.style.setProperty("--columns", [...widths, DECISION_WIDTH].join(" "));
    table.classList.toggle("without-content", !hasContent);
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
    if (focus) this.focusOn(index);
  }

  /* Focus a row and keep it in view, below the header; at least its start, if it is too tall. */
  focusOn(index) {
    const row = this.rowOf(index);
    row.focus({ preventScroll: true });
    const room = innerHeight - byId("columns").offsetHeight;
    row.scrollIntoView({ block: row.offsetHeight > room ? "start" : "nearest", behavior: "instant" });
  }

  /* Decide, or undo the same decision; `advance` makes the next suspect active. */
  decide(index, decision, advance = false) {
    const next = advance ? this.view.listed[this.view.places.get(index) + 1] : index;
    this.decisions.decide([index], !advance && this.decisions.of(index) === decision ? "" : decision);
    this.afterDecision(index, next ?? index, advance || !this.body.contains(document.activeElement));
  }

  /* Decide that a class is the true one. */
  choose(index, code, advance = false) {
    const { observed, proposed } = this.report.suspects;
    const decision = { [observed[index]]: "reject", [proposed[index]]: "accept" }[code] ?? `correct:${code}`;
    if (this.decisions.of(index) !== decision || advance) this.decide(index, decision, advance);
  }

  /* Accept all listed suspects that are undecided and above the probability of the filter. */
  acceptAll() {
    const indices = this.view.acceptable(this.checked);
    if (!indices.length) return;
    this.decisions.decide(indices, "accept");
    this.refresh(this.active, 0);
    this.tellProgress();
  }

  undo() {
    const undone = this.decisions.undo();
    if (undone.length === 1) this.afterDecision(undone[0], undone[0], true);
    else if (undone.length) {
      this.refresh(this.active, 0);
      this.tellProgress();
      this.focusOn(this.active);
    }
  }

  /* A filter by decision may hide the suspect, but not while a choice of its class takes letters: then the one in its place becomes active. */
  afterDecision(index, next, focus) {
    const isTyping = document.activeElement.matches("select.choice");
    if (this.view.filters.decision !== "" && !isTyping) {
      this.refresh(next, this.view.places.get(index) ?? 0);
      if (this.rowOf(this.active)) this.focusOn(this.active);
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
    if (UNSORTED.includes(name)) return element("th", { role: "columnheader", scope: "col", className: name }, COLUMNS[name]);
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
    const other = element("span", { className: "other-decision" });
    cells.push(element("td", { role: "cell", className: "decision" }, ...buttons, other));
    const className = index < this.report.n_suspects ? "act" : "";
    return element("tr", { role: "row", "data-index": index, className }, ...cells);
  }

  newCell(column, index) {
    const value = this.values[column][index];
    return element("td", { role: "cell", className: column }, ...this.content(column, value, index));
  }

  content(column, value, index) {
    if (column === "row") return [String(value)];
    if (column === "probability") {
      const text = probabilityText(value, this.checked.has(index));
      return [element("span", { className: "value" }, text), this.newGauge(value)];
    }
    if (column === "image") return value ? [thumbnail(value, `Image of row ${this.values.row[index]}`)] : [];
    if (column === "cells") {
      return [element("div", {}, ...pairs(this.values.columns.slice(0, MOST_PAIRS), value))];
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
    const decision = this.decisions.of(index);
    row.dataset.decision = kindOf(decision);
    for (const button of row.querySelectorAll(".decision button")) {
      button.tabIndex = active ? 0 : -1;
      button.setAttribute("aria-pressed", String(button.className === decision));
    }
    row.querySelector(".other-decision").replaceChildren(...this.otherDecision(decision));
    this.paintDetail(row, index, active);
  }

  /* A decision that is neither of the two buttons. */
  otherDecision(decision) {
    if (decision === "unsure") return ["unsure"];
    if (kindOf(decision) !== "correct") return [];
    return ["✓ ", element("b", { dir: "auto" }, this.report.classes[correctionOf(decision)])];
  }

  /* The active row has the details of its suspect, and its text has the words that are reasons. */
  paintDetail(row, index, active) {
    const before = row.querySelector(".detail");
    const text = row.querySelector("td.text div");
    if (text) text.replaceChildren(...(active ? marked(this.values.text[index], this.detail.inputs(index)) : [this.values.text[index]]));
    if (text) text.tabIndex = active && text.scrollHeight > text.clientHeight ? 0 : -1;
    if (!active) return before?.remove();
    // The details stay, because a choice that has the focus still takes letters.
    const cell = before ?? this.detail.newCell(index);
    if (!before) row.append(cell);
    this.detail.paint(cell, index);
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
    const [accepted, rejected, corrected, unsure] = ["accept", "reject", "correct", "unsure"].map((kind) =>
      this.decisions.count(kind),
    );
    const undecided = this.report.suspects.row.length - this.decisions.made.size;
    const rare = Object.entries({ corrected, unsure }).filter(([, count]) => count);
    const counts = [...Object.entries({ accepted, rejected }), ...rare, ["undecided", undecided]];
    byId("progress").textContent = counts.map(([word, count]) => `${grouped(count)} ${word}`).join(", ");
    byId("export").disabled = accepted + rejected + corrected === 0;
    byId("undo").disabled = this.decisions.history.length === 0;
    this.tellAcceptAll();
    byId("saved").textContent = this.decisions.isSaved
      ? "Decisions are saved in this browser."
      : "This browser does not save decisions: export them before you close the page.";
  }

  /* A button that decides many rows needs a probability first, and says how many. */
  tellAcceptAll() {
    const { least } = this.view.filters;
    const count = least > 0 ? this.view.acceptable(this.checked).length : 0;
    const rows = count === 1 ? "1 row" : `${grouped(count)} rows`;
    byId("accept-all").disabled = count === 0;
    byId("accept-all").textContent = least > 0 ? `Accept ${rows} ≥ ${least.toFixed(2)}` : "Accept all ≥ a probability";
  }
}
