const controls = document.getElementById("unflip-controls");
const shown = document.getElementById("unflip-shown");
let busy = false, stale = false;

function currentSetting() {
  const query = new URLSearchParams();
  for (const slider of controls.querySelectorAll("input[type=range]")) {
    const value = JSON.parse(slider.dataset.steps)[slider.value];
    slider.previousElementSibling.textContent = value;
    slider.setAttribute("aria-valuetext", value);
    query.set(slider.name, value);
  }
  query.set("targets", controls.elements.targets.value);
  query.set("fit_intercept", controls.elements.fit_intercept.checked);
  return query;
}

// One request at a time: positions that a slider passes while one is running are skipped.
async function redraw() {
  const query = currentSetting();
  if (busy) { stale = true; return; }
  busy = true;
  try {
    shown.innerHTML = await (await fetch("/answer?" + query)).text();
  } catch {
    shown.textContent = "The server has stopped: start unflip explore again.";
  }
  busy = false;
  if (stale) { stale = false; redraw(); }
}

controls.addEventListener("input", redraw);
controls.addEventListener("submit", (event) => event.preventDefault());
