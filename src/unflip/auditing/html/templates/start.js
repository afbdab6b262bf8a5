/* Builds the page. */

const SEARCH_PAUSE = 120; // milliseconds after the last key, before the list is searched

function bind(id, event, change) {
  byId(id).addEventListener(event, change);
}

function addClassChoices(report) {
  for (const side of ["observed", "proposed"]) {
    const counts = report.classes.map(() => 0);
    report.suspects[side].forEach((code) => counts[code]++);
    const choices = report.classes.map((name, code) => `${name} (${grouped(counts[code])})`);
    byId(`filter-${side}`).append(...choices.map((text, code) => element("option", { value: code }, text)));
  }
}

function addSortChoices(table) {
  const arrows = { ascending: "↑", descending: "↓" };
  for (const column of table.columns.filter((name) => !UNSORTED.includes(name))) {
    for (const [direction, arrow] of Object.entries(arrows)) {
      const value = `${column} ${direction}`;
      byId("sort-choice").append(element("option", { value }, `${COLUMNS[column]} ${arrow}`));
    }
  }
}

function startFilters(table) {
  const { view } = table;
  const filter = (name, value) => {
    view.filters[name] = value;
    table.restart();
  };
  let waiting;
  bind("search", "input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => filter("search", event.target.value), SEARCH_PAUSE);
  });
  for (const name of ["observed", "proposed", "decision"]) {
    bind(`filter-${name}`, "change", (event) => filter(name, event.target.value));
  }
  bind("least", "input", (event) => {
    showLeast();
    filter("least", Number(event.target.value));
  });
  bind("only-act", "change", (event) => filter("onlyAct", event.target.checked));
  bind("reset", "click", () => resetFilters(table));
}

function showLeast() {
  byId("least-value").textContent = Number(byId("least").value).toFixed(2);
}

function resetFilters(table) {
  table.view.filters = { ...NO_FILTERS };
  for (const id of ["search", "filter-observed", "filter-proposed", "filter-decision"]) byId(id).value = "";
  byId("least").value = 0;
  byId("only-act").checked = false;
  showLeast();
  table.restart();
}

function startButtons(report, decisions, table) {
  for (const button of document.querySelectorAll("[data-turn]")) {
    button.addEventListener("click", () => table.turnTo(table.page + Number(button.dataset.turn)));
  }
  bind("accept-all", "click", () => table.acceptAll());
  bind("undo", "click", () => table.undo());
  bind("export", "click", () => download("decisions.csv", decisionsAsCsv(decisions, report)));
  bind("sort-choice", "change", (event) => {
    const [column, direction] = event.target.value.split(" ");
    table.view.sorting = { column, descending: direction === "descending" };
    table.restart();
  });
}

/* The same report may be open in two windows: each shows the decisions of the other. */
function startSharing(decisions, table) {
  addEventListener("storage", (event) => {
    if (event.key !== decisions.key) return;
    decisions.load();
    table.refresh(table.active, 0);
    table.tellProgress();
  });
}

function start() {
  const report = JSON.parse(byId("report-data").textContent);
  new Tabs(byId("tabs"));
  const decisions = new Decisions(report.key, report.suspects.row, report.classes.length);
  const table = new SuspectTable(report, decisions, new View(report, decisions));
  addClassChoices(report);
  addSortChoices(table);
  startFilters(table);
  startButtons(report, decisions, table);
  startSharing(decisions, table);
  listenToKeys(table);
  resetFilters(table); // a browser may restore the filters from before a reload
  byId("panels")?.append(...report.panels.map((panel) => newPanel(panel, report.classes)));
  if (report.transition) startHeatMaps(report, table);
  if (report.outlook) startOutlook(report);
  startChecks(report);
}

start();
