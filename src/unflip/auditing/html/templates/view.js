/* Which suspects are listed, and in what order. */

const NO_FILTERS = { search: "", observed: "", proposed: "", decision: "", least: 0, onlyAct: false };
const WORST_FIRST = { column: "probability", descending: true };
const collator = new Intl.Collator("en", { numeric: true });

class View {
  constructor(report, decisions) {
    this.report = report;
    this.decisions = decisions;
    this.filters = { ...NO_FILTERS };
    this.sorting = { ...WORST_FIRST };
    this.update();
  }

  /* Find anew what is listed: places in the report's list of suspects. */
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
    const wanted = this.filters.search.trim().toLowerCase();
    return (index) =>
      (!onlyAct || index < n_suspects) &&
      suspects.probability[index] >= least &&
      (observed === "" || suspects.observed[index] === Number(observed)) &&
      (proposed === "" || suspects.proposed[index] === Number(proposed)) &&
      (decision === "" || (this.decisions.of(index) || "none") === decision) &&
      (wanted === "" || this.haystack(index).includes(wanted));
  }

  haystack(index) {
    this.haystacks ??= [];
    const { row, id, text } = this.report.suspects;
    this.haystacks[index] ??= `${row[index]}\n${id?.[index] ?? ""}\n${text?.[index] ?? ""}`.toLowerCase();
    return this.haystacks[index];
  }

  sorted(listed) {
    const { column, descending } = this.sorting;
    const values = this.report.suspects[column];
    const sign = descending ? -1 : 1;
    // The list is worst first already, the rows that were checked last.
    if (column === "probability") return listed.sort((one, other) => sign * (other - one));
    const compare = typeof values[0] === "number" ? (one, other) => one - other : collator.compare;
    return listed.sort((one, other) => sign * compare(values[one], values[other]) || one - other);
  }

  sortBy(column) {
    const again = this.sorting.column === column;
    this.sorting = { column, descending: again ? !this.sorting.descending : column === "probability" };
    this.update();
  }
}
