/* Keys of the table. They work while the table has the focus; j and k also work if nothing has the focus. */

const KEYS = {
  j: (table) => table.move(1),
  ArrowDown: (table) => table.move(1),
  k: (table) => table.move(-1),
  ArrowUp: (table) => table.move(-1),
  a: (table) => table.decide(table.active, "accept", true),
  r: (table) => table.decide(table.active, "reject", true),
  "?": (table) => table.decide(table.active, "unsure", true),
  c: (table) => table.detail.focusChoice(),
  u: (table) => table.undo(),
};

/* What a key does; undefined for other keys. */
function actionOf(key, table) {
  const { classes } = table.report;
  const place = Number(key) - 1;
  const hasNumbers = classes.length > 2 && classes.length <= MOST_KEYS; // of two, a and r choose each
  const isNumbered = hasNumbers && /^[1-9]$/.test(key) && place < classes.length;
  if (isNumbered) return () => table.choose(table.active, place, true);
  return Object.hasOwn(KEYS, key) ? () => KEYS[key](table) : undefined;
}

/* A choice of the class has keys of its own: letters find a class, Enter confirms. */
function pressInChoice(event, table) {
  if (event.key !== "Enter" && event.key !== "Escape") return;
  event.preventDefault();
  if (event.key === "Enter") table.move(1);
  else table.activate(table.active);
}

function isPlain(event) {
  return !(event.ctrlKey || event.metaKey || event.altKey);
}

function listenToKeys(table) {
  table.body.addEventListener("keydown", (event) => {
    if (!isPlain(event)) return;
    if (event.target.matches("select")) return pressInChoice(event, table);
    const action = actionOf(event.key, table);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
  document.addEventListener("keydown", (event) => {
    const entersTable = document.activeElement === document.body && (event.key === "j" || event.key === "k");
    if (entersTable && isPlain(event)) table.activate(table.active);
  });
  table.body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !event.target.closest("button, select, .detail")) table.activate(Number(row.dataset.index), getSelection().isCollapsed);
  });
}
