// The estimator: sliders bound to their numbers, and a question that asks itself again as it changes.
(() => {
  "use strict";

  const TYPING_MS = 200;
  const SLIDING_MS = 90;
  const ADDRESS_MS = 900;
  const SUFFIXES = [["T", 1e12], ["B", 1e9], ["M", 1e6], ["K", 1e3]];

  const question = () => document.getElementById("question");

  // --- counts as people write them: 10T, 8.03B

  const parsed = (text) => {
    const found = /^([\d.]+(?:e\+?\d+)?)\s*([KMBT]?)$/i.exec(text.trim().replace(/[,_]/g, ""));
    if (!found) return Number.NaN;
    const size = SUFFIXES.find(([letter]) => letter === found[2].toUpperCase())?.[1] ?? 1;
    return Number(found[1]) * size;
  };

  const written = (count) => {
    const [letter, size] = SUFFIXES.find(([, each]) => count >= each) ?? ["", 1];
    return `${Number((count / size).toPrecision(3))}${letter}`;
  };

  // --- sliders: 1000 steps between low and high, even or in powers

  const parts = (slider) => ({
    range: slider.querySelector("[data-slider-range]"),
    number: slider.querySelector("input:not([type=range])"),
    clear: slider.querySelector("[data-slider-clear]"),
    note: slider.querySelector("[data-at]"),
    isLog: slider.dataset.scale === "log",
    low: Number(slider.dataset.low),
    high: Number(slider.dataset.high),
    step: Number(slider.dataset.step),
  });

  const placeOf = (value, { isLog, low, high }) => {
    const share = isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.round(1000 * Math.min(1, Math.max(0, share)));
  };

  const valueAt = (place, { isLog, low, high, step }) => {
    const share = place / 1000;
    if (isLog) return low * (high / low) ** share;
    const value = low + share * (high - low);
    return Number((Math.round(value / step) * step).toFixed(4));
  };

  const rest = (slider) => {
    const found = parts(slider);
    const given = found.number.value.trim() !== "";
    const value = given ? parsed(found.number.value) : Number(found.note?.dataset.at ?? Number.NaN);
    found.range.disabled = false;
    found.range.toggleAttribute("data-resting", !given);
    if (found.clear) found.clear.hidden = !given;
    if (Number.isFinite(value)) found.range.value = placeOf(value, found);
    fill(found.range);
    const shown = given ? found.number.value : (found.note?.dataset.at ?? "");
    found.range.setAttribute("aria-valuetext", shown);
    if (!given) found.number.placeholder = shown;
  };

  const slide = (slider) => {
    const found = parts(slider);
    const value = valueAt(Number(found.range.value), found);
    found.number.value = slider.dataset.shows === "count" ? written(value) : String(value);
    found.range.removeAttribute("data-resting");
    fill(found.range);
    found.range.setAttribute("aria-valuetext", found.number.value);
    if (found.clear) found.clear.hidden = false;
  };

  // Through the object model, which the content security policy leaves alone.
  const fill = (range) => range.style.setProperty("--fill", `${range.value / 10}%`);

  const restAll = () => document.querySelectorAll("[data-slider]").forEach(rest);

  // --- asking again: at once while sliding (the newest value follows), a moment after typing

  let timer = null;
  let last = 0;
  const ask = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      last = performance.now();
      window.htmx.trigger(question(), "recompute");
    }, wait);
  };

  document.addEventListener("input", (event) => {
    const slider = event.target.closest("[data-slider]");
    if (event.target.matches("[data-slider-range]")) {
      slide(slider);
      ask(Math.max(0, SLIDING_MS - (performance.now() - last)));
      return;
    }
    if (slider) rest(slider);
    if (event.target.form === question()) ask(TYPING_MS);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
    else if (event.target.form === question() && event.target.matches("select, [type=radio], [type=checkbox]")) ask(0);
  });

  document.addEventListener("click", (event) => {
    const clear = event.target.closest("[data-slider-clear]");
    if (!clear) return;
    const slider = clear.closest("[data-slider]");
    const { number } = parts(slider);
    number.value = "";
    number.focus();
    rest(slider);
    ask(0);
  });

  // --- what a swap would lose: which parts are unfolded, and where the reader is

  const unfolded = new Map();
  document.addEventListener("toggle", (event) => {
    if (event.target.id) unfolded.set(event.target.id, event.target.open);
  }, true);

  const unfold = () => {
    unfolded.forEach((open, id) => {
      const part = document.getElementById(id);
      if (part && part.open !== open) part.open = open;
    });
  };

  const markProblems = () => {
    question().querySelectorAll("[aria-invalid][data-marked]").forEach((field) => {
      field.removeAttribute("aria-invalid");
      delete field.dataset.marked;
    });
    document.querySelectorAll("[data-problems] [data-field]").forEach((problem) => {
      const field = question().elements.namedItem(problem.dataset.field);
      if (!(field instanceof Element) || field.hasAttribute("aria-invalid")) return;
      field.setAttribute("aria-invalid", "true");
      field.dataset.marked = "";
      field.closest("details")?.setAttribute("open", "");
    });
  };

  // A reload, or a copied address, asks the same; written when the question has come to rest.
  let address = null;
  const keepAddress = () => {
    clearTimeout(address);
    address = setTimeout(() => {
      const link = document.getElementById("share-text");
      if (link && !document.querySelector("[data-problems]")) history.replaceState(history.state, "", link.href);
    }, ADDRESS_MS);
  };

  const start = () => {
    restAll();
    document.body.addEventListener("htmx:afterSettle", (event) => {
      unfold();
      markProblems();
      restAll();
      if (event.detail.target.id === "model-fields") ask(0);
      else keepAddress();
    });
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
