"use strict";

/* What was decided about each suspect, by its place in the list; kept in this browser where it allows that. */
class Decisions {
  constructor(key, rows) {
    this.key = `unflip-audit-${key}`;
    this.rows = rows;
    this.kept = true;
    this.load();
  }

  load() {
    const places = new Map(this.rows.map((row, index) => [row, index]));
    const known = this.read().filter(([row, decision]) => places.has(row) && ["accept", "reject"].includes(decision));
    this.made = new Map(known.map(([row, decision]) => [places.get(row), decision]));
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

  /* Take back the last decision and return whose it was; undefined where there is none. */
  undo() {
    const last = this.history.pop();
    if (last) this.put(...last);
    return last?.[0];
  }

  put(index, decision) {
    this.made.delete(index); // so that the last one decided comes last, also after a reload
    if (decision) this.made.set(index, decision);
    this.save();
  }

  /* A browser may refuse storage, or hold something else under the key: then the page begins anew. */
  read() {
    try {
      const found = JSON.parse(localStorage.getItem(this.key) ?? "[]");
      return Array.isArray(found) ? found.filter(Array.isArray) : [];
    } catch {
      this.kept = false;
      return [];
    }
  }

  save() {
    const made = [...this.made].map(([index, decision]) => [this.rows[index], decision]);
    try {
      localStorage.setItem(this.key, JSON.stringify(made));
    } catch {
      this.kept = false;
    }
  }
}

/* What a spreadsheet may take for a formula, as in unflip.cli.files.safe_csv. Apostrophes that are there already would be
   taken for the guard. */
const BLANKS = /[\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/.source;
const SIGNS = /[=+\-@\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]/.source;
const FORMULA = new RegExp(`^'*(?:[\\x00-\\x1f]|${BLANKS}*${SIGNS})`);
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;

/* A cell that a spreadsheet would run as a formula begins with an apostrophe. */
function csvCell(value) {
  const text = String(value);
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvLine(cells) {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/* The decisions, in the order of the data rows. */
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
