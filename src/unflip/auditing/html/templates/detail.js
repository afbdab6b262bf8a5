/* The details of the active suspect: why it is suspect, similar rows, and the choice of any class. */

const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0, signDisplay: "exceptZero" });
const WORD = "[\\p{L}\\p{N}_]";
/* Between two words that count as neighbours: other characters, and words of one letter. */
const BETWEEN = `(?:(?!${WORD})[^])+(?:${WORD}(?:(?!${WORD})[^])+)*`;

/* A pattern with a group for each of some words and pairs of words. */
function patternOf(names) {
  const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const groups = names.map((name) => `(${name.split(" ").map(escaped).join(BETWEEN)})`);
  return new RegExp(`(?<!${WORD})(?:${groups.join("|")})(?!${WORD})`, "giu");
}

/* Text in which the inputs, pairs of a name and a share, are marked; the longest of two that overlap. */
function marked(text, inputs) {
  if (!inputs.length) return [text];
  const longestFirst = [...inputs].sort(([one], [other]) => other.length - one.length);
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(patternOf(longestFirst.map(([name]) => name)))) {
    const [, share] = longestFirst[match.slice(1).findIndex((group) => group !== undefined)];
    parts.push(text.slice(end, match.index), element("mark", { className: sideOf(share) }, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

/* Whether an input favours the proposed class or the observed one. */
function sideOf(share) {
  return share > 0 ? "toward" : "against";
}

/* Short cells of a table on a few lines. */
function pairs(columns, cells) {
  return columns.map((name, place) =>
    element("span", { className: "cell-pair" }, element("span", { className: "name" }, name), ` ${cells[place]}`),
  );
}

function thumbnail(uri, description) {
  return element("img", { src: uri, alt: description });
}

class Detail {
  constructor(table) {
    Object.assign(this, { table, report: table.report });
  }

  /* Names and shares of the inputs of a suspect, the largest share first; empty if there are none. */
  inputs(index) {
    const { details } = this.report;
    return (details?.inputs[index] ?? []).map(([place, share]) => [details.names[place], share]);
  }

  newCell(index) {
    const parts = [this.why(index), this.similar(index), this.decide(index)].filter(Boolean);
    return element("td", { role: "cell", className: "detail" }, ...parts);
  }

  why(index) {
    const { cells } = this.report.suspects;
    const content = cells ? this.cellTable(index) : this.reasons(index);
    return content && element("section", { className: "why" }, ...content);
  }

  heading(index) {
    const { suspects, classes } = this.report;
    return element("h3", {}, "Why ", element("b", { dir: "auto" }, classes[suspects.proposed[index]]), "?");
  }

  /* A list of the inputs, or why there is none. */
  reasons(index) {
    const { details } = this.report;
    if (!details) return null;
    if (details.note) return [this.heading(index), element("p", {}, details.note)];
    if (!details.names.length) return null;
    if (index >= details.inputs.length) {
      return [this.heading(index), element("p", {}, `Reasons are computed for the first ${grouped(details.inputs.length)} suspects.`)];
    }
    const lines = this.inputs(index).map(([name, share]) => ({ name, share }));
    return [this.heading(index), this.newTable(lines), this.explanation()];
  }

  /* The cells of a row as a table, those with the largest shares first. */
  cellTable(index) {
    const { columns, cells } = this.report.suspects;
    const inputs = this.inputs(index);
    const isOf = (name, column) => name === column || name.startsWith(`${column}=`) || name.startsWith(`${column} `);
    const lines = columns.map((column, place) => {
      const shares = inputs.filter(([name]) => isOf(name, column)).map(([, share]) => share);
      return { name: column, value: cells[index][place], share: shares.length ? shares.reduce((sum, each) => sum + each) : null };
    });
    const others = inputs.filter(([name]) => !columns.some((column) => isOf(name, column)));
    lines.push(...others.map(([name, share]) => ({ name, value: "", share })));
    lines.sort((one, other) => Math.abs(other.share ?? 0) - Math.abs(one.share ?? 0));
    const end = inputs.length ? this.explanation() : element("p", { className: "soft" }, this.report.details?.note ?? "");
    return [this.heading(index), this.newTable(lines), end];
  }

  newTable(lines) {
    const hasShares = lines.some(({ share }) => share !== null);
    const hasValues = this.report.suspects.cells !== null;
    const largest = Math.max(...lines.map(({ share }) => Math.abs(share ?? 0)));
    const names = ["input", ...(hasValues ? ["value"] : []), ...(hasShares ? ["share"] : [])];
    const heads = names.map((name) => element("th", { scope: "col", className: name }, name));
    const rows = lines.map(({ name, value, share }) => {
      const cells = [element("th", { scope: "row", dir: "auto" }, name)];
      if (hasValues) cells.push(element("td", { dir: "auto" }, value));
      if (hasShares) cells.push(this.newShare(share, largest));
      return element("tr", {}, ...cells);
    });
    return element("table", { className: "inputs" }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  }

  newShare(share, largest) {
    if (share === null) return element("td", { className: "share" });
    const bar = element("span", { className: `bar-of-share ${sideOf(share)}`, "aria-hidden": "true" });
    bar.style.setProperty("--share", Math.abs(share) / largest);
    return element("td", { className: "share" }, PERCENT.format(share), bar);
  }

  explanation() {
    const text = "Share of all inputs in the log-odds of the two labels: + favours the proposed label, − the observed one.";
    return element("p", { className: "soft" }, text);
  }

  /* The nearest rows whose label is almost certainly right. */
  similar(index) {
    const { details } = this.report;
    if (!details || details.note && !details.nearest.length) return null;
    const heading = element("h3", {}, "Similar rows with confident labels");
    if (index >= details.nearest.length) {
      const text = `Similar rows are computed for the first ${grouped(details.nearest.length)} suspects.`;
      return element("section", {}, heading, element("p", {}, text));
    }
    const rows = details.nearest[index].map((place) => this.newExample(place));
    const content = rows.length ? element("ul", {}, ...rows) : element("p", {}, "No label is confident.");
    return element("section", { className: "similar" }, heading, content);
  }

  newExample(place) {
    const { examples } = this.report.details;
    const { classes, suspects } = this.report;
    const label = element("b", { dir: "auto" }, classes[examples.label[place]]);
    const name = `row ${examples.row[place]}${examples.id ? ` · ${examples.id[place]}` : ""}`;
    const line = element("p", {}, label, " ", element("span", { className: "soft", dir: "auto" }, name));
    const content = [line];
    const image = examples.images?.[place];
    if (image) content.push(thumbnail(image, `Image of row ${examples.row[place]}`));
    if (examples.text) content.push(element("p", { className: "excerpt", dir: "auto" }, examples.text[place]));
    else if (examples.cells) content.push(element("p", { className: "excerpt" }, ...pairs(suspects.columns, examples.cells[place])));
    return element("li", {}, ...content);
  }

  /* Unsure, or any class as the true one; of two classes, Accept and Reject choose each. */
  decide(index) {
    const onclick = () => this.table.decide(index, "unsure");
    const unsure = element("button", { type: "button", className: "unsure", onclick }, "Unsure");
    if (this.report.classes.length === 2) return element("section", { className: "choose" }, unsure);
    const label = element("label", {}, "True class ", this.newChoice(index));
    return element("section", { className: "choose" }, element("h3", {}, "Another class?"), label, unsure);
  }

  newChoice(index) {
    const options = this.report.classes.map((name, place) => element("option", { value: place }, name));
    const choice = element("select", { className: "choice" }, element("option", { value: "" }, "choose"), ...options);
    choice.addEventListener("change", () => choice.value !== "" && this.table.choose(index, Number(choice.value)));
    return choice;
  }

  /* Show the decision on a suspect in its details. */
  paint(cell, index) {
    const decision = this.table.decisions.of(index);
    const isChosen = decision !== "" && decision !== "unsure";
    const choice = cell.querySelector("select.choice");
    if (choice) choice.value = isChosen ? chosenClass(decision, this.report.suspects, index) : "";
    cell.querySelector(".unsure").setAttribute("aria-pressed", String(decision === "unsure"));
  }

  focusChoice() {
    this.table.rowOf(this.table.active)?.querySelector("select.choice")?.focus();
  }
}
