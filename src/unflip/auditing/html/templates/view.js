/* The filtered and sorted list of suspects. */

const NO_FILTERS = { search: "", observed: "", proposed: "", decision: "", least: 0, onlyAct: false };
const WORST_FIRST = { column: "probability", descending: true };
const collator = new Intl.Collator("en", { numeric: true });

/* The rank of each text; equal texts have the same rank. */
function ranked(texts) {
  const order = texts.map((_, index) => index).sort((one, other) => collator.compare(texts[one], texts[other]));
  const ranks = new Array(texts.length);
  let rank = 0;
  order.forEach((index, place) => {
    if (place && collator.compare(texts[order[place - 1]], texts[index])) rank = place;
    ranks[index] = rank;
  });
  return ranks;
}

class View {
  constructor(report, decisions) {
    this.report = report;
    this.decisions = decisions;
    this.filters = { ...NO_FILTERS };
    this.sorting = { ...WORST_FIRST };
    this.update();
  }

  /* Filter and sort again; `listed` holds places in the list of suspects of the report. */
  update() {
    const matches = this.matcher();
    const listed = [];
    for (let index = 0; index < this.report.suspects.row.length; index++) if (matches(index)) listed.push(index);
    this.listed = this.sorted(listed);
    this.places = new Map(this.listed.map((index, place) => [index, place]));
  }

  matcher() {
    const { suspects, n_suspects } = this.report;
    const { observed, proposed, decision, least, onlyAct } = this.filters;
    const query = this.filters.search.trim().toLowerCase();
    return (index) =>
      (!onlyAct || index < n_suspects) &&
      suspects.probability[index] >= least &&
      (observed === "" || suspects.observed[index] === Number(observed)) &&
      (proposed === "" || suspects.proposed[index] === Number(proposed)) &&
      (decision === "" || (kindOf(this.decisions.of(index)) || "none") === decision) &&
      (query === "" || this.searchText(index).includes(query));
  }

  searchText(index) {
    this.searchTexts ??= [];
    const { row, id, text, cells } = this.report.suspects;
    const parts = [row[index], id?.[index] ?? "", text?.[index] ?? "", ...(cells?.[index] ?? [])];
    this.searchTexts[index] ??= parts.join("\n").toLowerCase();
    return this.searchTexts[index];
  }

  sorted(listed) {
    const { column, descending } = this.sorting;
    const sign = descending ? -1 : 1;
    // The report lists the worst suspects first and checked rows last.
    if (column === "probability") return listed.sort((one, other) => sign * (other - one));
    const ranks = this.ranksOf(column);
    return listed.sort((one, other) => sign * (ranks[one] - ranks[other]) || one - other);
  }

  /* A number for each suspect by which a column is sorted; texts are compared once. */
  ranksOf(column) {
    const values = this.report.suspects[column];
    if (typeof values[0] === "number") return values;
    this.ranks ??= {};
    this.ranks[column] ??= ranked(values);
    return this.ranks[column];
  }

  /* The listed suspects that are undecided, unchecked, and as likely wrong as the filter says. */
  acceptable(checked) {
    return this.listed.filter((index) => this.decisions.of(index) === "" && !checked.has(index));
  }

  sortBy(column) {
    const again = this.sorting.column === column;
    this.sorting = { column, descending: again ? !this.sorting.descending : column === "probability" };
    this.update();
  }
}
