"use strict";

const DECISION = /^(accept|reject|unsure|correct:([0-9]+))$/;

/* "accept", "reject", "unsure" or "correct"; empty without a decision. */
function kindOf(decision) {
  return decision.split(":")[0];
}

/* The place of the class that "correct:3" names. */
function correctionOf(decision) {
  return Number(decision.split(":")[1]);
}

/* The decision on each suspect, by its place in the list; saved in this browser if it allows that. */
class Decisions {
  constructor(key, rows, nClasses) {
    this.key = `unflip-audit-${key}`;
    this.rows = rows;
    this.nClasses = nClasses;
    this.isSaved = true;
    this.load();
  }

  load() {
    const places = new Map(this.rows.map((row, index) => [row, index]));
    const saved = this.read().filter(([row, decision]) => places.has(row) && this.isDecision(decision));
    this.made = new Map(saved.map(([row, decision]) => [places.get(row), decision]));
    this.history = [...this.made.keys()].map((index) => [[index, ""]]);
  }

  isDecision(decision) {
    const match = typeof decision === "string" && DECISION.exec(decision);
    return Boolean(match) && Number(match[2] ?? 0) < this.nClasses;
  }

  of(index) {
    return this.made.get(index) ?? "";
  }

  count(kind) {
    let total = 0;
    for (const decision of this.made.values()) total += kindOf(decision) === kind;
    return total;
  }

  /* Make the same decision on some suspects, as one step. */
  decide(indices, decision) {
    this.history.push(indices.map((index) => [index, this.of(index)]));
    indices.forEach((index) => this.put(index, decision));
    this.save();
  }

  /* Undo the last step and return the places of its suspects; none if there is no step. */
  undo() {
    const step = this.history.pop() ?? [];
    for (const [index, before] of step) this.put(index, before);
    if (step.length) this.save();
    return step.map(([index]) => index);
  }

  put(index, decision) {
    this.made.delete(index); // so that the last decision comes last, also after a reload
    if (decision) this.made.set(index, decision);
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

/* The place of the class that a decision chooses. */
function chosenClass(decision, { observed, proposed }, index) {
  if (kindOf(decision) === "correct") return correctionOf(decision);
  return decision === "accept" ? proposed[index] : observed[index];
}

/* The decisions as CSV, in the order of the rows of the data; "unsure" is no decision. */
function decisionsAsCsv(decisions, { suspects, classes }) {
  const decided = [...decisions.made.keys()].filter((index) => decisions.of(index) !== "unsure");
  decided.sort((one, other) => suspects.row[one] - suspects.row[other]);
  const lines = decided.map((index) => {
    const [observed, proposed] = [classes[suspects.observed[index]], classes[suspects.proposed[index]]];
    const decision = decisions.of(index);
    const label = classes[chosenClass(decision, suspects, index)];
    return csvLine([suspects.row[index], suspects.id?.[index] ?? "", observed, proposed, kindOf(decision), label]);
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
