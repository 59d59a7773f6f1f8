"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  document.body.classList.add("scripted");
  const canvas = document.getElementById("canvas"), overview = document.getElementById("overview"), tip = document.getElementById("tip");
  const LABEL = 15, BAR = 17, GAP = 6, AXIS = 22, SHORTEST = 200; // px, px, px, px, ns
  const GROUPS = {wait: "wait", copy: "copy", allocate: "memory", free: "memory", pin: "memory", kernel: "kernel", fill: "fill", idle: "idle"};
  const lanes = data.lanes, texts = data.texts, wall = Math.max(data.wall, 1);
  const colors = {};
  let view = [0, wall], chosen = 0, turn = 0, wanted = false, held = null, hovered = null;

  const byId = (id) => document.getElementById(id);
  const readColors = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["card", "ink", "dim", "line", "soft", "accent", "wait", "copy", "memory", "launch", "kernel", "fill", "idle", "idle-line"])
      colors[name] = style.getPropertyValue("--" + name).trim();
  };
  const time = (ns) => {
    const unit = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([length]) => Math.abs(ns) >= 0.9995 * length);
    if (!unit) return `${Math.round(ns)} ns`;
    const value = ns / unit[0];
    return `${value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} ${unit[1]}`;
  };
  // The first event of a lane that begins at a time or later.
  const from = (lane, at) => {
    let low = 0, high = lane.from.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.from[middle] < at) low = middle + 1; else high = middle;
    }
    return low;
  };
  const isChosen = (lane, index) => lane.kind === "host" && data.costs.length > 0 && data.costs[chosen].places.includes(lane.places[index])
    && !["launch", "query"].includes(texts[lane.kinds[index]]);
  const occurrences = () => data.costs.length ? data.costs[chosen].occurrences : [];

  // Drawing -----------------------------------------------------------------------------------------------------------------

  const fit = (element, height) => {
    const ratio = window.devicePixelRatio || 1, width = element.clientWidth;
    if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
      element.width = Math.round(width * ratio);
      element.height = Math.round(height * ratio);
      element.style.height = `${height}px`;
    }
    const pen = element.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return [pen, width];
  };
  const step = (length, most) => {
    const power = 10 ** Math.floor(Math.log10(length / most));
    return [1, 2, 5, 10].map((part) => part * power).find((part) => length / part <= most);
  };
  const hatch = (pen, x, y, width, height) => {
    pen.fillStyle = colors.idle;
    pen.fillRect(x, y, width, height);
    if (width < 5) return;
    pen.save();
    pen.beginPath();
    pen.rect(x, y, width, height);
    pen.clip();
    pen.strokeStyle = colors["idle-line"];
    pen.globalAlpha = 0.55;
    pen.beginPath();
    for (let at = x - height - ((x - height) % 7); at < x + width; at += 7) {
      pen.moveTo(at, y + height);
      pen.lineTo(at + height, y);
    }
    pen.stroke();
    pen.restore();
  };
  const drawLane = (pen, lane, y, width, scale) => {
    const cells = [];
    let index = Math.max(from(lane, view[0]) - 1, 0), covered = -1;
    while (index < lane.from.length && lane.from[index] <= view[1]) {
      const left = (lane.from[index] - view[0]) * scale, length = lane.length[index] * scale, right = left + length;
      if (right < 0) { index += 1; continue; }
      if (length < 1 && left < covered) { // what lies in the same pixel is drawn once
        index = Math.max(from(lane, view[0] + covered / scale), index + 1);
        continue;
      }
      const x = Math.max(left, -2), end = Math.min(Math.max(right, left + 1), width + 2);
      const group = GROUPS[texts[lane.kinds[index]]] || "launch";
      if (group === "idle") hatch(pen, x, y, end - x, BAR);
      else {
        pen.fillStyle = colors[group];
        pen.fillRect(x, y, end - x > 3 ? end - x - 0.5 : end - x, BAR);
      }
      if (end - x > 46) cells.push([index, Math.max(x, 0), Math.min(end, width), group]);
      covered = Math.max(covered, length < 1 ? Math.floor(left) + 1 : left);
      index += 1;
    }
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (const [at, x, end, group] of cells) {
      pen.save();
      pen.beginPath();
      pen.rect(x + 3, y, end - x - 6, BAR);
      pen.clip();
      pen.fillStyle = group === "idle" ? colors.ink : colors.card;
      pen.fillText(group === "idle" ? time(lane.length[at]) : texts[lane.names[at]], x + 5, y + BAR / 2 + 0.5);
      pen.restore();
    }
  };
  const mark = (pen, lane, y, scale) => { // the calls of the chosen place stand out, however short
    if (lane.kind !== "host" || !data.costs.length) return;
    let last = -9;
    for (let index = Math.max(from(lane, view[0]) - 1, 0); index < lane.from.length && lane.from[index] <= view[1]; index += 1) {
      if (!isChosen(lane, index)) continue;
      const x = (lane.from[index] - view[0]) * scale, length = Math.max(lane.length[index] * scale, 3);
      if (x < last + 1 || x + length < 0) continue;
      if (x < last + 8 && length <= 3) { // too close for frames
        pen.fillStyle = colors.ink;
        pen.fillRect(x, y - 3, 1, 2);
      } else {
        pen.fillStyle = colors[GROUPS[texts[lane.kinds[index]]] || "launch"];
        pen.fillRect(x, y, length, BAR);
        pen.strokeStyle = colors.ink;
        pen.lineWidth = 1.5;
        pen.strokeRect(x - 0.5, y - 1.5, length + 1, BAR + 3);
      }
      last = x;
    }
    pen.lineWidth = 1;
  };
  const drawAxis = (pen, width, scale, height) => {
    const length = view[1] - view[0], each = step(length, Math.max(2, Math.floor(width / 110)));
    const unit = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([size]) => view[1] >= size) || [1, "ns"];
    const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(each / unit[0]) + 1e-9)));
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (let at = Math.ceil(view[0] / each) * each; at <= view[1]; at += each) {
      const x = (at - view[0]) * scale;
      pen.fillStyle = colors.line;
      pen.fillRect(Math.round(x), AXIS - 5, 1, height - AXIS + 5);
      pen.fillStyle = colors.dim;
      pen.fillText(`${(at / unit[0]).toFixed(digits)} ${unit[1]}`, Math.min(x + 4, width - 62), AXIS / 2 - 2);
    }
  };
  const drawUnknown = (pen, scale, width, height) => { // parts of the run whose events are not in the page
    pen.fillStyle = colors.soft;
    let reached = 0;
    for (const [start, end] of [...data.windows, [wall, wall]]) {
      const x = Math.max((reached - view[0]) * scale, 0), right = Math.min((start - view[0]) * scale, width);
      if (right > x) {
        pen.fillRect(x, AXIS, right - x, height - AXIS);
        if (right - x > 150) {
          pen.fillStyle = colors.dim;
          pen.font = "11px system-ui, sans-serif";
          pen.fillText("events of this part are not in the page", x + 8, height - 8);
          pen.fillStyle = colors.soft;
        }
      }
      reached = end;
    }
  };
  const draw = () => {
    wanted = false;
    const height = AXIS + lanes.length * (LABEL + BAR + GAP) + 2;
    const [pen, width] = fit(canvas, height), scale = width / (view[1] - view[0]);
    drawUnknown(pen, scale, width, height);
    drawAxis(pen, width, scale, height);
    const spell = occurrences()[turn];
    if (spell) {
      pen.fillStyle = colors.accent;
      pen.globalAlpha = 0.09;
      pen.fillRect((spell[0] - view[0]) * scale, AXIS, Math.max((spell[1] - spell[0]) * scale, 2), height - AXIS);
      pen.globalAlpha = 1;
    }
    lanes.forEach((lane, row) => {
      const top = AXIS + row * (LABEL + BAR + GAP);
      pen.font = "11px system-ui, sans-serif";
      pen.textBaseline = "middle";
      pen.fillStyle = colors.dim;
      pen.fillText(lane.name, 2, top + LABEL / 2 + 1);
      pen.fillStyle = colors.line;
      pen.fillRect(0, top + LABEL + BAR, width, 0.5);
      drawLane(pen, lane, top + LABEL, width, scale);
      mark(pen, lane, top + LABEL, scale);
    });
    drawOverview();
  };
  const drawOverview = () => {
    const [pen, width] = fit(overview, 44), bins = data.overview.gpu.length, each = width / bins;
    const rows = [["GPU", data.overview.gpu, "kernel", 2], ["host held", data.overview.host, "wait", 24]];
    for (const [, shares, color, y] of rows) {
      pen.fillStyle = colors.soft;
      pen.fillRect(0, y, width, 18);
      pen.fillStyle = colors[color];
      shares.forEach((share, bin) => pen.fillRect(bin * each, y + 18 * (1 - share / 100), each + 0.3, 18 * share / 100));
    }
    const left = view[0] / wall * width, right = view[1] / wall * width;
    pen.fillStyle = colors.card;
    pen.globalAlpha = 0.62;
    pen.fillRect(0, 0, left, 44);
    pen.fillRect(right, 0, width - right, 44);
    pen.globalAlpha = 1;
    pen.fillStyle = colors.ink;
    for (const [start] of occurrences()) pen.fillRect(start / wall * width, 20.5, 1.5, 3);
    pen.strokeStyle = colors.accent;
    pen.lineWidth = 2;
    pen.strokeRect(left + 1, 1, Math.max(right - left - 2, 2), 42);
    pen.lineWidth = 1;
    pen.font = "600 10px system-ui, sans-serif";
    pen.textBaseline = "top";
    for (const [name, , , y] of rows) {
      pen.strokeStyle = colors.card;
      pen.lineWidth = 3;
      pen.strokeText(name, 4, y + 4);
      pen.lineWidth = 1;
      pen.fillStyle = colors.ink;
      pen.fillText(name, 4, y + 4);
    }
  };
  const redraw = () => {
    if (!wanted) {
      wanted = true;
      requestAnimationFrame(draw);
    }
  };

  // Moving ------------------------------------------------------------------------------------------------------------------

  const look = (start, end) => {
    let length = Math.min(Math.max(end - start, SHORTEST), wall);
    if (!Number.isFinite(length)) length = wall;
    const first = Math.min(Math.max(start, 0), wall - length);
    view = [first, first + length];
    tip.hidden = true;
    redraw();
  };
  const zoom = (factor, at = 0.5) => {
    const length = view[1] - view[0], pivot = view[0] + length * at, next = Math.max(length * factor, SHORTEST);
    look(pivot - next * at, pivot + next * (1 - at));
  };
  const move = (share) => {
    const length = view[1] - view[0];
    look(view[0] + share * length, view[1] + share * length);
  };
  const visit = (next) => {
    const all = occurrences();
    byId("which").textContent = all.length ? "" : "no call of this place in the page";
    if (!all.length) { look(0, wall); return; }
    turn = (next + all.length) % all.length;
    const [start, end, weight] = all[turn], around = Math.max((end - start) * 0.7, 20000);
    byId("which").textContent = `${turn + 1} of ${all.length} · ${time(weight)} at ${time(start)}`;
    look(start - around, end + around);
  };
  const worst = () => occurrences().reduce((best, one, index, all) => one[2] > all[best][2] ? index : best, 0);
  const choose = (number) => {
    chosen = number;
    for (const button of document.querySelectorAll(".place")) button.setAttribute("aria-pressed", String(Number(button.dataset.cost) === number));
    for (const article of document.querySelectorAll("#details article")) article.classList.toggle("on", Number(article.dataset.cost) === number);
    visit(worst());
  };

  // What the user does ------------------------------------------------------------------------------------------------------

  const shareOf = (event, element) => {
    const box = element.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  const eventAt = (event) => {
    const box = canvas.getBoundingClientRect(), row = Math.floor((event.clientY - box.top - AXIS) / (LABEL + BAR + GAP)), lane = lanes[row];
    if (!lane || (event.clientY - box.top - AXIS) % (LABEL + BAR + GAP) < LABEL) return null;
    const scale = (view[1] - view[0]) / box.width, at = view[0] + (event.clientX - box.left) * scale;
    for (let index = from(lane, at + 2 * scale) - 1, tries = 0; index >= 0 && tries < 4; index -= 1, tries += 1)
      if (lane.from[index] + lane.length[index] >= at - 2 * scale) return [lane, index];
    return null;
  };
  const tell = (event) => {
    const found = eventAt(event);
    tip.hidden = !found;
    if (!found) { hovered = null; return; }
    const [lane, index] = found, place = lane.places[index] >= 0 ? data.places[lane.places[index]] : null;
    if (hovered !== `${lane.name}/${index}`) {
      hovered = `${lane.name}/${index}`;
      const rows = [texts[lane.names[index]], `${time(lane.length[index])} at ${time(lane.from[index])}`, texts[lane.details[index]],
        place ? `${place[0]}:${place[1].join(" or ")}${place[2] ? ` in ${place[2]}` : ""}` : ""];
      tip.replaceChildren(...rows.filter(Boolean).map((text, row) => {
        const line = document.createElement(row === 0 ? "b" : "div");
        line.textContent = text;
        return line;
      }));
    }
    const box = byId("time").getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    tip.style.left = `${Math.max(4, Math.min(x + 14, box.width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + 18}px`;
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move((event.deltaX || event.deltaY) / 900);
    else zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY * (event.deltaMode === 1 ? 20 : 1))) / 350), shareOf(event, canvas));
  }, {passive: false});
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("held");
    held = {x: event.clientX, view: [...view]};
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) { tell(event); return; }
    const ns = (held.x - event.clientX) / canvas.clientWidth * (held.view[1] - held.view[0]);
    look(held.view[0] + ns, held.view[1] + ns);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { held = null; canvas.classList.remove("held"); });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => zoom(0.3, shareOf(event, canvas)));
  const jump = (event) => {
    const half = (view[1] - view[0]) / 2, at = shareOf(event, overview) * wall;
    look(at - half, at + half);
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); jump(event); });
  overview.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  const KEYS = {
    ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), a: () => move(-0.2), d: () => move(0.2),
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), w: () => zoom(0.6), s: () => zoom(1 / 0.6),
    0: () => look(0, wall), n: () => visit(turn + 1), p: () => visit(turn - 1), Home: () => visit(worst()),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    if (event.target.closest("summary, a")) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  byId("before").addEventListener("click", () => visit(turn - 1));
  byId("after").addEventListener("click", () => visit(turn + 1));
  byId("closer").addEventListener("click", () => zoom(0.6));
  byId("farther").addEventListener("click", () => zoom(1 / 0.6));
  byId("whole").addEventListener("click", () => look(0, wall));
  for (const button of document.querySelectorAll(".place")) button.addEventListener("click", () => choose(Number(button.dataset.cost)));
  new ResizeObserver(redraw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColors(); redraw(); });
  readColors();
  const asked = Number(location.hash.slice(1)) - 1; // trace.html#2 opens the second place
  if (data.costs.length) choose(data.costs[asked] ? asked : 0); else look(0, wall);
  draw();
  document.body.dataset.drawn = String(lanes.reduce((sum, lane) => sum + lane.from.length, 0));
})();
