"use strict";

/* The decision on each suspect, by its place in the list; saved in this browser if it allows that. */
class Decisions {
  constructor(key, rows) {
    this.key = `unflip-audit-${key}`;
    this.rows = rows;
    this.isSaved = true;
    this.load();
  }

  load() {
    const places = new Map(this.rows.map((row, index) => [row, index]));
    const saved = this.read().filter(([row, decision]) => places.has(row) && ["accept", "reject"].includes(decision));
    this.made = new Map(saved.map(([row, decision]) => [places.get(row), decision]));
    this.history = [...this.made.keys()].map((index) => [index, ""]);
  }

  of(index) {
    return this.made.get(index) ?? "";
  }

  count(decision) {
    let total = 0;
    for (const made of this.made.values()) total += made === decision;
    return total;
  }

  decide(index, decision) {
    this.history.push([index, this.of(index)]);
    this.put(index, decision);
  }

  /* Undo the last decision and return the place of its suspect; undefined if there is none. */
  undo() {
    const last = this.history.pop();
    if (last) this.put(...last);
    return last?.[0];
  }

  put(index, decision) {
    this.made.delete(index); // so that the last decision comes last, also after a reload
    if (decision) this.made.set(index, decision);
    this.save();
  }

  /* A browser may block storage, or hold other data under the key: then there are no decisions yet. */
  read() {
    try {
      const stored = JSON.parse(localStorage.getItem(this.key) ?? "[]");
      return Array.isArray(stored) ? stored.filter(Array.isArray) : [];
    } catch {
      this.isSaved = false;
      return [];
    }
  }

  save() {
    const made = [...this.made].map(([index, decision]) => [this.rows[index], decision]);
    try {
      localStorage.setItem(this.key, JSON.stringify(made));
    } catch {
      this.isSaved = false;
    }
  }
}

/* Cells that a spreadsheet may run as a formula, as in unflip._utils.guarded_cells. The pattern includes apostrophes at the
   start, which would be mistaken for the added one. */
const BLANKS = /[\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/.source;
const SIGNS = /[=+\-@\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]/.source;
const FORMULA = new RegExp(`^'*(?:[\\x00-\\x1f]|${BLANKS}*${SIGNS})`);
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;

/* Put an apostrophe before a cell that a spreadsheet would run as a formula. */
function csvCell(value) {
  const text = String(value);
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvLine(cells) {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/* The decisions as CSV, in the order of the rows of the data. */
function decisionsAsCsv(decisions, { suspects, classes }) {
  const decided = [...decisions.made.keys()].sort((one, other) => suspects.row[one] - suspects.row[other]);
  const lines = decided.map((index) => {
    const [observed, proposed] = [classes[suspects.observed[index]], classes[suspects.proposed[index]]];
    const decision = decisions.of(index);
    const label = decision === "accept" ? proposed : observed;
    return csvLine([suspects.row[index], suspects.id?.[index] ?? "", observed, proposed, decision, label]);
  });
  return csvLine(["row", "id", "observed", "proposed", "decision", "label"]) + lines.join("");
}

function download(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
