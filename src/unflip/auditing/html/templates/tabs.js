/* Makes tabs of the parts of the page: one part is shown at a time. Without scripts, and on paper, all parts are shown. */

const TAB_KEYS = {
  ArrowRight: (place, count) => (place + 1) % count,
  ArrowLeft: (place, count) => (place + count - 1) % count,
  Home: () => 0,
  End: (place, count) => count - 1,
  " ": (place) => place,
};

class Tabs {
  constructor(list) {
    this.tabs = [...list.querySelectorAll("a")];
    this.panels = this.tabs.map((tab) => byId(tab.hash.slice(1)));
    list.setAttribute("role", "tablist");
    this.tabs.forEach((tab, place) => this.join(tab, this.panels[place]));
    list.addEventListener("keydown", (event) => this.press(event));
    list.addEventListener("click", (event) => this.click(event));
    addEventListener("hashchange", () => this.follow());
    addEventListener("beforeprint", () => this.panels.forEach((panel) => (panel.hidden = false)));
    addEventListener("afterprint", () => this.open(this.current));
    this.open(0);
    this.follow();
  }

  join(tab, panel) {
    tab.id = `${panel.id}-tab`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
  }

  open(current) {
    this.current = current;
    this.tabs.forEach((tab, place) => {
      tab.setAttribute("aria-selected", String(place === current));
      tab.tabIndex = place === current ? 0 : -1;
      this.panels[place].hidden = place !== current;
    });
  }

  /* Open the tab, and keep its name in the address, so that a reload or a copied link opens it again. */
  choose(place) {
    this.open(place);
    this.tabs[place].focus();
    history.replaceState(null, "", this.tabs[place].hash);
  }

  /* Open the tab with the part that the address names, and show that part. */
  follow() {
    const part = byId(location.hash.slice(1));
    const place = this.panels.findIndex((panel) => panel.contains(part));
    if (place < 0) return;
    this.open(place);
    if (!this.panels.includes(part)) part.scrollIntoView();
  }

  press(event) {
    if (!isPlain(event) || !Object.hasOwn(TAB_KEYS, event.key)) return;
    event.preventDefault();
    const place = this.tabs.indexOf(event.target.closest("a"));
    this.choose(TAB_KEYS[event.key](place, this.tabs.length));
  }

  click(event) {
    const place = this.tabs.indexOf(event.target.closest("a"));
    if (place < 0 || !isPlain(event)) return;
    event.preventDefault();
    this.choose(place);
  }
}
