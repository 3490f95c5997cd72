/* The little script of every page: theme, menus, charts, file drop, copy. Works under a strict
   Content-Security-Policy: no inline handlers, no eval, no style attributes written as text. */

"use strict";

(() => {
  const root = document.documentElement;
  const own = document.currentScript;
  const language = root.lang.toLowerCase().startsWith("zh") ? "zh-CN" : "en";
  root.classList.add("js");

  // --- theme -------------------------------------------------------------------------------

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-theme-switch]");
    const chosen = form && event.submitter && event.submitter.value;
    if (!chosen) return;
    event.preventDefault();
    root.dataset.theme = chosen;
    form.querySelectorAll("button").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.value === chosen));
    });
    const body = new FormData(form, event.submitter);
    fetch(form.action, { method: "POST", body, redirect: "manual" });
  });

  // --- navigation drawer and menus -----------------------------------------------------------

  const openNav = (open) => {
    const button = document.querySelector("[data-nav-toggle]");
    if (!button) return;
    root.dataset.nav = open ? "open" : "closed";
    button.setAttribute("aria-expanded", String(open));
    if (open) document.querySelector("#sidebar a, #sidebar summary")?.focus();
    else if (document.activeElement?.closest("#sidebar")) button.focus();
  };

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-nav-toggle]")) {
      openNav(root.dataset.nav !== "open");
    } else if (root.dataset.nav === "open" && !event.target.closest("#sidebar")) {
      openNav(false);
    }
    document.querySelectorAll("details[data-menu][open]").forEach((menu) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    document.querySelectorAll("details[data-menu][open]").forEach((menu) => {
      menu.open = false;
      menu.querySelector("summary").focus();
    });
    if (root.dataset.nav === "open") openNav(false);
  });

  // --- charts ----------------------------------------------------------------------------------

  const ZH = {
    moduleType: "locale",
    name: "zh-CN",
    dictionary: {},
    format: {
      days: ["星期日", "星期一", "星期二", "星期三", "星期四", "星期五", "星期六"],
      shortDays: ["周日", "周一", "周二", "周三", "周四", "周五", "周六"],
      months: ["一月", "二月", "三月", "四月", "五月", "六月", "七月", "八月", "九月", "十月", "十一月", "十二月"],
      shortMonths: ["1月", "2月", "3月", "4月", "5月", "6月", "7月", "8月", "9月", "10月", "11月", "12月"],
      periods: ["上午", "下午"],
      dateTime: "%Y年%-m月%-d日 %X",
      date: "%Y年%-m月%-d日",
      time: "%H:%M:%S",
      decimal: ".",
      thousands: ",",
      grouping: [3],
      currency: ["¥", ""],
      year: "%Y年",
      month: "%Y年%-m月",
      dayMonth: "%-m月%-d日",
      dayMonthYear: "%Y年%-m月%-d日",
    },
  };

  // Plotly fills <style> elements that it finds by these ids. Ours carry the page's nonce, so its
  // rules are allowed; see docs/adr/0001-plotly-under-a-strict-csp.md.
  const STYLES = [
    "plotly.js-style-global",
    "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53",
  ];

  let plotly = null;
  const loadPlotly = () => {
    plotly ??= new Promise((resolve, reject) => {
      STYLES.forEach((id) => {
        const style = document.createElement("style");
        style.id = id;
        style.nonce = own.nonce;
        document.head.append(style);
      });
      const script = document.createElement("script");
      script.src = own.dataset.plotly;
      script.nonce = own.nonce;
      script.addEventListener("load", () => {
        window.Plotly.register(ZH);
        resolve(window.Plotly);
      });
      script.addEventListener("error", () => reject(new Error("plotly.min.js did not load")));
      document.head.append(script);
    });
    return plotly;
  };

  const tokenReader = () => {
    const probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const seen = new Map();
    const read = (name) => {
      if (!seen.has(name)) {
        probe.style.color = `var(--${name})`;
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = getComputedStyle(probe).color;
        canvas.fillRect(0, 0, 1, 1);
        seen.set(name, [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).join(", "));
      }
      return seen.get(name);
    };
    return {
      colour: (text) => {
        const [name, alpha = "1"] = text.slice("token:".length).split("/");
        return `rgba(${read(name)}, ${alpha})`;
      },
      done: () => probe.remove(),
    };
  };

  // A copy of the figure with every `token:…` colour replaced; only keys that name colours count.
  const resolved = (value, tokens, key = "") => {
    if (Array.isArray(value)) return value.map((entry) => resolved(entry, tokens, key));
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([name, entry]) => [name, resolved(entry, tokens, name)]),
      );
    }
    const isColour = key.endsWith("color") && typeof value === "string" && value.startsWith("token:");
    return isColour ? tokens.colour(value) : value;
  };

  const themed = (layout, narrow, ink) => {
    const axis = {
      gridcolor: ink("chart-grid"),
      linecolor: ink("chart-axis"),
      tickcolor: ink("chart-axis"),
      zeroline: false,
      automargin: true,
    };
    return {
      ...layout,
      autosize: true,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { t: 26, r: narrow ? 6 : 10, b: 24, l: 8 },
      font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 11 : 12, color: ink("ink-soft") },
      showlegend: false,
      annotations: (layout.annotations ?? []).filter((note) => !(narrow && note.name === "wide")),
      hoverlabel: {
        bgcolor: ink("surface-raised"),
        bordercolor: ink("line-strong"),
        font: { color: ink("ink"), size: 12 },
        namelength: -1,
      },
      xaxis: {
        ...axis,
        showgrid: false,
        ticks: "outside",
        ticklen: 5,
        nticks: narrow ? 4 : 9,
        showspikes: true,
        spikecolor: ink("chart-reference"),
        spikedash: "solid",
        spikemode: "across",
        spikesnap: "data",
        spikethickness: -1,
        hoverformat: language === "zh-CN" ? "%Y年%-m月%-d日" : "%-d %b %Y",
        ...layout.xaxis,
      },
      yaxis: {
        ...axis,
        ...layout.yaxis,
      },
    };
  };

  // The legend is ours: it wraps at any width, is read out, and its text is never markup.
  const legend = (traces) => {
    const list = document.createElement("ul");
    list.className = "chart-legend";
    list.setAttribute("role", "list");
    const svg = (name, attributes) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", name);
      Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
      return node;
    };
    traces.filter((trace) => trace.showlegend !== false).forEach((trace) => {
      const mark = svg("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" });
      const area = Boolean(trace.stackgroup) || trace.type === "bar";
      const line = trace.line ?? trace.marker.line;
      if (area) mark.append(svg("rect", { width: 22, height: 12, rx: 3, fill: trace.fillcolor ?? trace.marker.color }));
      const dash = { dot: "2 3", dash: "6 3", dashdot: "6 3 2 3" }[line.dash] ?? "none";
      mark.append(
        svg("line", {
          x1: 1,
          x2: 21,
          y1: area ? 1 : 6,
          y2: area ? 1 : 6,
          stroke: line.color,
          "stroke-width": area ? 2 : 2.5,
          "stroke-dasharray": dash,
        }),
      );
      const item = document.createElement("li");
      item.append(mark, document.createTextNode(trace.meta ?? ""));
      list.append(item);
    });
    return list;
  };

  // Charts of one page that say data-linked share days: a zoom and the day under the pointer.
  // Only where the pointer is fine: on touch a drag scrolls. The tables below say it all as well.
  const fine = matchMedia("(hover: hover) and (pointer: fine)");
  const linkable = (place) => place.hasAttribute("data-linked");
  const peers = (place) =>
    [...document.querySelectorAll("[data-linked][data-drawn]")].filter((other) => other !== place);

  const rangeOf = (change) => {
    const whole = change["xaxis.range"];
    const range = whole ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    return range[0] === undefined ? undefined : range;
  };

  const dayAxis = ({ dayAxis: start }, range) => ({
    "xaxis.range": range ?? [...start.range],
    "xaxis.tickmode": range ? "auto" : start.tickmode,
  });

  const link = (place, Plotly) => {
    const { range, tickmode = "auto" } = place.layout.xaxis;
    place.dayAxis = { range: [...range], tickmode };
    if (place.isLinked) return;
    place.isLinked = true;
    let isEcho = false;
    place.follow = async (span) => {
      isEcho = true;
      await Plotly.relayout(place, dayAxis(place, span));
      isEcho = false;
    };
    place.on("plotly_relayout", (change) => {
      const span = isEcho ? undefined : rangeOf(change);
      if (span === undefined) return;
      const isReset = String(span) === String(place.dayAxis.range);
      [place, ...peers(place)].forEach((one) => one.follow(isReset ? null : span));
    });
    place.on("plotly_hover", ({ points }) => {
      const at = points?.[0] && place._fullLayout.xaxis.d2l(points[0].x);
      if (at === undefined) return;
      peers(place).forEach((other) => Plotly.Fx.hover(other, { xval: at }, ["xy"], true));
    });
    place.on("plotly_unhover", () => {
      peers(place).forEach((other) => Plotly.Fx.unhover(other));
    });
  };

  const draw = async (place) => {
    const source = document.getElementById(place.dataset.chart);
    if (!source) return;
    try {
      const Plotly = await loadPlotly();
      const tokens = tokenReader();
      const ink = (name) => tokens.colour(`token:${name}`);
      const figure = resolved(JSON.parse(source.textContent), tokens);
      const layout = themed(figure.layout ?? {}, place.clientWidth < 560, ink);
      if (linkable(place) && fine.matches) {
        layout.dragmode = "zoom";
        layout.xaxis.fixedrange = false;
      }
      tokens.done();
      await Plotly.react(place, figure.data ?? [], layout, {
        responsive: true,
        displayModeBar: false,
        displaylogo: false,
        locale: language,
        scrollZoom: false,
        showTips: false,
        doubleClick: linkable(place) && fine.matches ? "reset" : false,
      });
      if (linkable(place)) link(place, Plotly);
      place.parentElement.querySelector(".chart-legend")?.remove();
      place.after(legend(figure.data ?? []));
      place.dataset.drawn = "yes";
    } catch (error) {
      place.classList.add("chart-failed");
      place.textContent = place.dataset.failed;
      throw error;
    }
  };

  const drawAll = (within) => {
    within.querySelectorAll("[data-chart]").forEach((place) => draw(place));
  };

  new MutationObserver(() => drawAll(document)).observe(root, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(document));

  // --- copy, file drop ---------------------------------------------------------------------------

  const tableText = (table) =>
    [...table.rows]
      .map((row) =>
        [...row.cells]
          .map((cell) => cell.querySelector(".quantity-missing") ? "" : (cell.querySelector("data")?.value ?? cell.innerText.trim()))
          .join("\t"),
      )
      .join("\n");

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.querySelector(button.dataset.copy);
    await navigator.clipboard.writeText(
      source.matches("table") ? tableText(source) : source.textContent.trim(),
    );
    const label = button.querySelector("[data-copy-label]") ?? button;
    const before = label.textContent;
    label.textContent = button.dataset.copied;
    setTimeout(() => {
      label.textContent = before;
    }, 2000);
  });

  const readyDrop = (drop) => {
    const input = drop.querySelector("input[type=file]");
    const names = drop.querySelector("[data-drop-names]");
    const size = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
    const list = () => {
      names.replaceChildren(
        ...[...input.files].map((file) => {
          const item = document.createElement("li");
          item.textContent = `${file.name} · ${size.format(file.size / 1e6)} MB`;
          return item;
        }),
      );
    };
    input.addEventListener("change", list);
    ["dragenter", "dragover"].forEach((name) => {
      drop.addEventListener(name, (event) => {
        event.preventDefault();
        drop.dataset.over = "";
      });
    });
    ["dragleave", "drop"].forEach((name) => {
      drop.addEventListener(name, () => delete drop.dataset.over);
    });
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      const files = new DataTransfer();
      [...event.dataTransfer.files]
        .slice(0, input.multiple ? undefined : 1)
        .forEach((file) => files.items.add(file));
      input.files = files.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
  };

  // --- parts that ask again by themselves ------------------------------------------------------------

  // Nobody looks at a hidden page, and an answer that says the same is not read out again.
  const calmPolls = () => {
    document.body.addEventListener("htmx:beforeRequest", (event) => {
      const polls = event.detail.elt.getAttribute("hx-trigger")?.includes("every ");
      if (polls && document.hidden) event.preventDefault();
    });
    document.body.addEventListener("htmx:beforeSwap", (event) => {
      const { elt, serverResponse } = event.detail;
      if (!elt.hasAttribute("data-poll")) return;
      if (elt.lastAnswer === serverResponse) event.detail.shouldSwap = false;
      elt.lastAnswer = serverResponse;
    });
  };

  const ready = (within) => {
    drawAll(within);
    within.querySelectorAll("[data-drop]").forEach(readyDrop);
  };

  const start = () => {
    ready(document);
    calmPolls();
    document.body.addEventListener("htmx:load", (event) => {
      if (event.detail.elt !== document.body) ready(event.detail.elt);
    });
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
