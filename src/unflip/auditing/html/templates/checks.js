/* The tab to check rows: one row at a time, whose true class a person chooses without seeing its label. */

const UNSURE = -1;
const MOST_KEYS = 9; // classes with a number key; more classes are searched by name

/* The answers by place among the rows to check: class, or `UNSURE`, and note. Saved in this browser if it allows that. */
class Checks {
  constructor(key, { row }, classes) {
    this.key = `unflip-checks-${key}`;
    this.rows = row;
    this.classes = classes;
    this.isSaved = true;
    this.history = [];
    this.load();
  }

  load() {
    const places = new Map(this.rows.map((row, place) => [row, place]));
    const saved = this.read().filter(([row, choice]) => places.has(row) && this.isChoice(choice));
    this.choices = new Map(saved.filter(([, choice]) => choice !== null).map(([row, choice]) => [places.get(row), choice]));
    this.notes = new Map(saved.map(([row, , note]) => [places.get(row), String(note ?? "")]));
  }

  isChoice(choice) {
    return choice === null || (Number.isInteger(choice) && choice >= UNSURE && choice < this.classes.length);
  }

  note(place) {
    return this.notes.get(place) ?? "";
  }

  choose(place, choice) {
    this.history.push([place, this.choices.get(place)]);
    this.put(place, choice);
  }

  /* Undo the last answer and return the place of its row; undefined if there is none. */
  undo() {
    const last = this.history.pop();
    if (last) this.put(...last);
    return last?.[0];
  }

  put(place, choice) {
    if (choice === undefined) this.choices.delete(place);
    else this.choices.set(place, choice);
    this.save();
  }

  writeNote(place, note) {
    this.notes.set(place, note);
    this.save();
  }

  get nUnsure() {
    return [...this.choices.values()].filter((choice) => choice === UNSURE).length;
  }

  /* Places with an answer or a note, in the order of the data. */
  get answered() {
    const places = this.rows.map((_, place) => place).filter((place) => this.choices.has(place) || this.note(place));
    return places.sort((one, other) => this.rows[one] - this.rows[other]);
  }

  /* The next place without an answer, from the start again after the end; undefined if all have one. */
  openAfter(place) {
    const order = this.rows.map((_, step) => (place + 1 + step) % this.rows.length);
    return order.find((each) => !this.choices.has(each));
  }

  /* A browser may block storage, or hold other data under the key: then there are no answers yet. */
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
    const lines = this.answered.map((place) => [this.rows[place], this.choices.get(place) ?? null, this.note(place)]);
    try {
      localStorage.setItem(this.key, JSON.stringify(lines));
    } catch {
      this.isSaved = false;
    }
  }
}

/* All checked rows as CSV, those of earlier batches first, so that the file has the whole sample. */
function checksAsCsv(checks, { check, classes }) {
  const label = (code) => classes[code] ?? ""; // none for unsure rows, and for rows without a label
  const { earlier } = check;
  const before = earlier.row.map((row, place) =>
    csvLine([row, earlier.id?.[place] ?? "", label(earlier.observed[place]), label(earlier.label[place]), ""]),
  );
  const now = checks.answered.map((place) =>
    csvLine([
      check.row[place],
      check.id?.[place] ?? "",
      label(check.observed[place]),
      label(checks.choices.get(place)),
      checks.note(place),
    ]),
  );
  return csvLine(["row", "id", "observed", "label", "note"]) + before.join("") + now.join("");
}

/* The class buttons, with a search field if there are too many for number keys. */
class ClassChoice {
  constructor(classes, choose) {
    this.isSearched = classes.length > MOST_KEYS;
    this.search = byId("check-search");
    this.buttons = classes.map((name, code) => this.newButton(name, code, choose));
    byId("check-classes").replaceChildren(...this.buttons);
    byId("check-search-label").hidden = !this.isSearched;
    if (this.isSearched) byId("check-classes").tabIndex = 0; // so that keys scroll it
    this.names = classes.map((name) => name.toLowerCase());
    this.marked = 0;
    this.filter();
    this.search.addEventListener("input", () => this.filter());
  }

  newButton(name, code, choose) {
    const key = this.isSearched ? [] : [element("kbd", { "aria-hidden": "true" }, String(code + 1)), " "];
    const label = element("span", { dir: "auto" }, name);
    const button = element("button", { type: "button", onclick: () => choose(code) }, ...key, label);
    if (this.isSearched) button.tabIndex = -1; // reached by the search field
    return button;
  }

  /* Show the classes whose name contains the searched text; those that start with it come first. */
  filter() {
    if (!this.isSearched) return;
    const query = this.search.value.trim().toLowerCase();
    const matches = this.names.map((_, code) => code).filter((code) => this.names[code].includes(query));
    const starts = (code) => (this.names[code].startsWith(query) ? 0 : 1);
    this.matches = matches.sort((one, other) => starts(one) - starts(other) || one - other);
    byId("check-classes").replaceChildren(...this.matches.map((code) => this.buttons[code]));
    this.mark(0);
  }

  /* Mark the class that Enter chooses. */
  mark(place) {
    this.marked = Math.min(Math.max(place, 0), this.matches.length - 1);
    const query = this.search.value.trim();
    this.buttons.forEach((button, code) => button.classList.toggle("marked", query !== "" && code === this.best));
    this.buttons[this.best]?.scrollIntoView({ block: "nearest" });
    const name = this.best === undefined ? "No class matches." : `Enter: ${this.report(this.best)}`;
    byId("check-match").textContent = query === "" ? "" : name;
  }

  report(code) {
    return this.buttons[code].textContent;
  }

  get best() {
    return this.matches[this.marked];
  }

  show(choice) {
    this.buttons.forEach((button, code) => button.setAttribute("aria-pressed", String(code === choice)));
    if (this.isSearched && this.search.value !== "") {
      this.search.value = "";
      this.filter();
    }
  }
}

class Checker {
  constructor(report) {
    this.report = report;
    this.check = report.check;
    this.checks = new Checks(report.key, report.check, report.classes);
    this.choice = new ClassChoice(report.classes, (code) => this.answer(code));
    this.place = this.checks.openAfter(-1) ?? 0;
  }

  get count() {
    return this.check.row.length;
  }

  answer(choice) {
    const { place } = this;
    this.checks.choose(place, choice);
    this.goOn();
    if (choice === UNSURE) this.justUnsure = place;
  }

  /* Write a note on this row, or on the one before if that was just answered unsure. */
  startNote() {
    this.go(this.justUnsure ?? this.place);
    byId("check-note").focus();
  }

  /* A note on an answered row ends it, as the answer did. */
  endNote() {
    if (this.checks.choices.has(this.place)) this.goOn();
    byId("check-row").focus();
  }

  /* Go to the next row without an answer. */
  goOn() {
    this.go(this.checks.openAfter(this.place) ?? this.place);
  }

  undo() {
    this.go(this.checks.undo() ?? this.place);
  }

  move(step) {
    this.go(Math.min(Math.max(this.place + step, 0), this.count - 1));
  }

  go(place) {
    this.place = place;
    this.justUnsure = undefined;
    this.show();
  }

  show() {
    const { checks, place } = this;
    const choice = checks.choices.get(place);
    byId("check-row").replaceChildren(...this.content(place));
    byId("check-row").scrollTop = 0;
    this.choice.show(choice);
    byId("check-unsure").setAttribute("aria-pressed", String(choice === UNSURE));
    byId("check-note").value = checks.note(place);
    byId("check-place").textContent = `${grouped(place + 1)} of ${grouped(this.count)}`;
    byId("check-back").disabled = place === 0;
    byId("check-next").disabled = place === this.count - 1;
    this.tellProgress();
  }

  tellProgress() {
    const { checks } = this;
    const [done, unsure] = [checks.choices.size, checks.nUnsure];
    const counts = [`${grouped(done)} of ${grouped(this.count)} done`, ...(unsure ? [`${grouped(unsure)} unsure`] : [])];
    const end = done === this.count ? " All rows are done: export them." : "";
    byId("check-progress").textContent = `${counts.join(", ")}.${end}`;
    byId("check-bar").value = done;
    byId("check-export").disabled = checks.answered.length === 0;
    byId("check-undo").disabled = checks.history.length === 0;
    byId("check-saved").textContent = checks.isSaved
      ? "Answers are saved in this browser."
      : "This browser does not save answers: export them before you close the page.";
  }

  /* What the page shows of a row: all but its label, and ids that contain it. */
  content(place) {
    const { row, id, hides_ids, text, image, cells } = this.check;
    const name = [`Row ${row[place]}`, ...(id && !hides_ids ? [id[place]] : [])].join(" · ");
    const parts = [element("h3", { dir: "auto" }, name)];
    if (image?.[place]) parts.push(element("img", { src: image[place], alt: `Image of row ${row[place]}` }));
    if (text) parts.push(element("div", { className: "text", dir: "auto" }, text[place]));
    if (cells) parts.push(this.newCells(cells.names, cells.values[place]));
    return parts;
  }

  newCells(names, values) {
    const lines = names.map((name, column) =>
      element("tr", {}, element("th", { scope: "row", dir: "auto" }, name), element("td", { dir: "auto" }, values[column])),
    );
    return element("table", { className: "plain" }, element("tbody", {}, ...lines));
  }

  export() {
    download("checks.csv", checksAsCsv(this.checks, this.report));
  }
}

/* Keys while nothing, or a part of the tab that is no field, has the focus. */
const CHECK_KEYS = {
  ArrowLeft: (checker) => checker.move(-1),
  ArrowRight: (checker) => checker.move(1),
  "?": (checker) => checker.answer(UNSURE),
};
const LETTER_KEYS = {
  k: (checker) => checker.move(-1),
  j: (checker) => checker.move(1),
  u: (checker) => checker.undo(),
  n: (checker) => checker.startNote(),
};

/* What a key does; undefined for other keys. */
function checkCommandOf(checker, key) {
  if (Object.hasOwn(CHECK_KEYS, key)) return CHECK_KEYS[key];
  if (checker.choice.isSearched || key.length > 1) return undefined;
  const code = Number(key) - 1;
  if (/^[1-9]$/.test(key) && code < checker.report.classes.length) return () => checker.answer(code);
  return Object.hasOwn(LETTER_KEYS, key) ? LETTER_KEYS[key] : undefined;
}

function pressCheckKey(checker, event) {
  const { choice } = checker;
  const command = checkCommandOf(checker, event.key);
  const isLetter = choice.isSearched && event.key.length === 1 && event.key !== " ";
  if (!command && !isLetter) return;
  if (command || !isRowInView()) event.preventDefault();
  // Nobody answers for a row out of view: the first key only shows it.
  if (!isRowInView()) byId("checker").scrollIntoView({ behavior: "instant" });
  else if (command) command(checker);
  else choice.search.focus(); // to be typed there
}

/* Whether at least half of the row is in view. */
function isRowInView() {
  const { top, bottom } = byId("check-row").getBoundingClientRect();
  const middle = (top + bottom) / 2;
  return middle >= 0 && middle <= innerHeight;
}

function pressSearchKey(checker, event) {
  const { choice } = checker;
  const isEmpty = choice.search.value === "";
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key === "Enter" && !isEmpty && choice.best !== undefined) checker.answer(choice.best);
  else if (Object.hasOwn(steps, event.key)) choice.mark(choice.marked + steps[event.key]);
  else if (isEmpty && Object.hasOwn(CHECK_KEYS, event.key)) CHECK_KEYS[event.key](checker);
  else return;
  event.preventDefault();
}

function listenToCheckKeys(checker) {
  const panel = byId("check");
  const note = byId("check-note");
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (panel.hidden || !isPlain(event) || !(target === document.body || panel.contains(target))) return;
    if (target === checker.choice.search) pressSearchKey(checker, event);
    else if (target !== note) pressCheckKey(checker, event);
    else if (event.key === "Enter" || event.key === "Escape") checker.endNote();
  });
}

function startChecks(report) {
  if (!report.check.row.length) return;
  const checker = new Checker(report);
  const { checks } = checker;
  bind("check-back", "click", () => checker.move(-1));
  bind("check-next", "click", () => checker.move(1));
  bind("check-unsure", "click", () => checker.answer(UNSURE));
  bind("check-undo", "click", () => checker.undo());
  bind("check-export", "click", () => checker.export());
  bind("check-note", "input", (event) => {
    checks.writeNote(checker.place, event.target.value);
    checker.tellProgress();
  });
  // The same report may be open in two windows: each shows the answers of the other.
  addEventListener("storage", (event) => {
    if (event.key !== checks.key) return;
    checks.load();
    checker.show();
  });
  listenToCheckKeys(checker);
  byId("check-bar").max = checker.count;
  for (const part of document.querySelectorAll(".search-keys")) part.hidden = !checker.choice.isSearched;
  for (const part of document.querySelectorAll(".number-keys")) part.hidden = checker.choice.isSearched;
  byId("check-list").hidden = true;
  byId("checker").hidden = false;
  checker.show();
}
