"use strict";
(() => {
  const said = document.getElementById("said");

  const copyBySelection = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy).textContent;
      let done = true;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        done = copyBySelection(text);
        button.focus();
      }
      said.textContent = button.textContent = done ? "Copied" : "Not copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  const shown = (value, unit) =>
    value === null ? "not finite" : String(Number(value.toPrecision(8))) + (unit ? " " + unit : "");

  for (const figure of document.querySelectorAll("figure.plot")) {
    const svg = figure.querySelector("svg");
    const readout = figure.querySelector(".readout");
    const cursor = figure.querySelector(".cursor");
    const plot = JSON.parse(svg.dataset.plot);
    const [left, right, low, high] = plot.x;
    const marked = new Set(plot.series.flatMap((one) => one.marked));
    const steps = [...new Set(plot.series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
    const values = plot.series.map((one) => new Map(one.points));
    const at = (step) => (high === low ? (left + right) / 2 : left + ((step - low) / (high - low)) * (right - left));
    let index = steps.length - 1;

    const show = (move) => {
      const step = steps[index];
      const parts = plot.series
        .map((one, place) => [one.name, values[place].get(step)])
        .filter((part) => part[1] !== undefined)
        .map((part) => part[0] + " " + shown(part[1], plot.unit));
      readout.textContent = "step " + step + ": " + parts.join(" · ");
      if (marked.has(step)) {
        const bad = document.createElement("span");
        bad.className = "bad";
        bad.textContent = " · offending";
        readout.append(bad);
      }
      const x = move ? at(step) : -9;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    };
    const rest = () => { index = steps.length - 1; show(false); };

    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * 440;
      index = steps.reduce((best, step, i) => (Math.abs(at(step) - x) < Math.abs(at(steps[best]) - x) ? i : best), 0);
      show(true);
    });
    svg.addEventListener("pointerleave", rest);
    svg.addEventListener("blur", rest);
    svg.addEventListener("focus", () => show(true));
    svg.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: steps.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      index = Math.min(Math.max(to, 0), steps.length - 1);
      show(true);
    });
    rest();
  }

  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    const fold = target && target.closest("details");
    if (fold) fold.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
