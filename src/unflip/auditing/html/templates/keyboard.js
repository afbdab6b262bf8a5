/* Keys of the table. They work while the table has the focus; j and k also work if nothing has the focus. */

const KEYS = {
  j: (table) => table.move(1),
  ArrowDown: (table) => table.move(1),
  k: (table) => table.move(-1),
  ArrowUp: (table) => table.move(-1),
  a: (table) => table.decide(table.active, "accept", true),
  r: (table) => table.decide(table.active, "reject", true),
  u: (table) => table.undo(),
};

function isPlain(event) {
  return !(event.ctrlKey || event.metaKey || event.altKey);
}

function listenToKeys(table) {
  table.body.addEventListener("keydown", (event) => {
    if (!isPlain(event) || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    KEYS[event.key](table);
  });
  document.addEventListener("keydown", (event) => {
    const entersTable = document.activeElement === document.body && (event.key === "j" || event.key === "k");
    if (entersTable && isPlain(event)) table.activate(table.active);
  });
  table.body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !event.target.closest("button")) table.activate(Number(row.dataset.index), getSelection().isCollapsed);
  });
}
