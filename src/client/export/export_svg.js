// SPDX-License-Identifier: Apache-2.0
// Zoom, search and keys of the flame graph. Without it the file is a picture with a title on each frame.
// What it shows of the program it sets as text, never as markup.
"use strict";
(function () {
  var SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
  var svg = document.documentElement, group = document.getElementById("frames");
  var details = document.getElementById("details");
  var MARGIN = 10, ROW = 18, top = +group.dataset.top, rows = +group.dataset.rows, unit = group.dataset.unit;
  var frames = [], byElement = new Map(), zoomed, current, flipped = false, pattern = null, charWidth = 7.3;
  var input, matched, resetButton;

  function read() {
    group.querySelectorAll("g").forEach(function (g) {
      var numbers = g.dataset.f.split(" ").map(Number), title = g.querySelector("title").textContent;
      var f = { g: g, rect: g.querySelector("rect"), text: g.querySelector("text"), name: title.split("\n")[0],
                start: numbers[0], weight: numbers[1], depth: numbers[2], own: numbers[3], up: null, down: [] };
      frames.push(f);
      byElement.set(g, f);
      g.setAttribute("role", "treeitem");
      g.setAttribute("aria-level", f.depth + 1);
      g.setAttribute("tabindex", "-1");
    });
    var open = []; // the callers of the frame that is looked at: frames come after their callers
    frames.forEach(function (f) {
      open.length = f.depth;
      f.up = f.depth ? open[f.depth - 1] : null;
      if (f.up) f.up.down.push(f);
      open[f.depth] = f;
    });
    group.setAttribute("role", "tree");
    group.setAttribute("aria-label", "calls, callers around what they call");
  }

  function amount(weight) {
    return unit === "us" ? (weight / 1e6).toFixed(weight < 1e6 ? 4 : 2) + " s" : weight + (weight === 1 ? " sample" : " samples");
  }

  function percent(part, whole) { return whole > 0 ? (100 * part / whole).toFixed(2) + " %" : "?"; }

  // --- where frames stand ---

  function width() { return Math.max(400, svg.clientWidth || window.innerWidth || 1200); }

  function holds(f, z) { return f.depth < z.depth && f.start <= z.start && f.start + f.weight >= z.start + z.weight; }

  function within(f, z) { return f.depth >= z.depth && f.start >= z.start && f.start + f.weight <= z.start + z.weight; }

  function place(f, x, w) {
    var y = flipped ? top + (rows - 1 - f.depth) * ROW : top + f.depth * ROW;
    var room = Math.floor((w - 6) / charWidth);
    f.g.style.display = w < 0.1 ? "none" : "";
    f.rect.setAttribute("x", x.toFixed(2));
    f.rect.setAttribute("y", y);
    f.rect.setAttribute("width", Math.max(w, 0.1).toFixed(2));
    f.text.setAttribute("x", (x + 3).toFixed(2));
    f.text.setAttribute("y", y + 13);
    f.text.textContent = room < 3 ? "" : f.name.length <= room ? f.name : f.name.slice(0, room - 2) + "..";
  }

  function draw() {
    var all = width() - 2 * MARGIN, z = zoomed, scale = z.weight > 0 ? all / z.weight : 0;
    frames.forEach(function (f) {
      var outer = holds(f, z);
      f.g.classList.toggle("outer", outer);
      if (outer) place(f, MARGIN, all);
      else if (within(f, z)) place(f, MARGIN + (f.start - z.start) * scale, f.weight * scale);
      else f.g.style.display = "none";
    });
    resetButton.style.display = z === frames[0] ? "none" : "";
    search();
  }

  function zoom(f) {
    zoomed = f;
    draw();
    select(f, false);
  }

  function tell(f) {
    if (!f) return;
    var text = f.name + "   " + amount(f.weight) + ", " + percent(f.weight, frames[0].weight) + " of all";
    if (zoomed !== frames[0]) text += ", " + percent(f.weight, zoomed.weight) + " of what is zoomed";
    details.textContent = text + "; own " + amount(f.own) + ", " + percent(f.own, frames[0].weight);
  }

  function select(f, focus) {
    if (!f) return;
    if (current) current.g.setAttribute("tabindex", "-1");
    current = f;
    f.g.setAttribute("tabindex", "0");
    if (focus) f.g.focus();
    tell(f);
  }

  // --- search ---

  function setPattern() {
    var text = input.value;
    pattern = null;
    input.removeAttribute("aria-invalid");
    if (text) {
      try {
        pattern = new RegExp(text, text === text.toLowerCase() ? "i" : "");
      } catch (error) {
        input.setAttribute("aria-invalid", "true");
        frames.forEach(function (f) { f.g.classList.remove("hit"); });
        matched.textContent = "no regular expression";
        return;
      }
    }
    search();
  }

  function isHit(f) { return pattern !== null && pattern.test(f.name); }

  // Below a hit nothing is counted once more; frames come after their callers and by where they begin.
  function search() {
    var covered = 0, n = 0, end = -1;
    frames.forEach(function (f) {
      var hit = isHit(f);
      f.g.classList.toggle("hit", hit);
      if (!hit || !(within(f, zoomed) || holds(f, zoomed))) return;
      n++;
      var from = Math.max(f.start, zoomed.start), to = Math.min(f.start + f.weight, zoomed.start + zoomed.weight);
      if (from >= end) {
        covered += to - from;
        end = to;
      }
    });
    if (input.getAttribute("aria-invalid") !== "true")
      matched.textContent = pattern ? "matched " + percent(covered, zoomed.weight) + ", " + n + (n === 1 ? " frame" : " frames") : "";
  }

  function step(by) {
    var seen = frames.filter(function (f) { return isHit(f) && f.g.style.display !== "none"; });
    if (!seen.length) return;
    var at = seen.indexOf(current);
    select(seen[at < 0 ? (by > 0 ? 0 : seen.length - 1) : (at + by + seen.length) % seen.length], true);
  }

  function clearSearch() {
    input.value = "";
    setPattern();
  }

  // --- keys ---

  function beside(by) {
    var row = current.up ? current.up.down : [current], at = row.indexOf(current) + by;
    return at >= 0 && at < row.length ? row[at] : null;
  }

  function widest() {
    return current.down.reduce(function (best, f) { return !best || f.weight > best.weight ? f : best; }, null);
  }

  function flip() {
    flipped = !flipped;
    draw();
  }

  function onKey(event) {
    var key = event.key, typing = event.target === input, find = (event.ctrlKey || event.metaKey) && key.toLowerCase() === "f";
    if ((find && !typing) || (key === "/" && !typing)) {
      event.preventDefault(); // once more in the field it is the browser's own
      input.focus();
      input.select();
      return;
    }
    if (typing) {
      if (key === "Enter") step(event.shiftKey ? -1 : 1);
      if (key === "Escape") {
        clearSearch();
        select(current, true);
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target.closest && event.target.closest(".button"))) return;
    var down = flipped ? "ArrowUp" : "ArrowDown", up = flipped ? "ArrowDown" : "ArrowUp", done = true;
    if (key === down) select(widest(), true);
    else if (key === up) select(current.up, true);
    else if (key === "ArrowLeft") select(beside(-1), true);
    else if (key === "ArrowRight") select(beside(1), true);
    else if (key === "Enter" || key === " ") zoom(current);
    else if (key === "Backspace" || key === "u") zoom(zoomed.up || zoomed);
    else if (key === "Escape" && pattern) clearSearch();
    else if (key === "Escape" || key === "Home") zoom(frames[0]);
    else if (key === "n" || key === "N") step(key === "n" ? 1 : -1);
    else if (key === "i") flip();
    else done = false;
    if (done) event.preventDefault();
  }

  // --- what is there only with a script ---

  function button(id, x, label, what, run) {
    var g = document.createElementNS(SVG, "g"), rect = document.createElementNS(SVG, "rect"), text = document.createElementNS(SVG, "text");
    g.id = id;
    g.setAttribute("class", "button");
    g.setAttribute("role", "button");
    g.setAttribute("tabindex", "0");
    g.setAttribute("aria-label", what);
    rect.setAttribute("x", x);
    rect.setAttribute("y", 66);
    rect.setAttribute("width", label.length * 8 + 14);
    rect.setAttribute("height", 22);
    rect.setAttribute("rx", 3);
    text.setAttribute("x", x + 7);
    text.setAttribute("y", 81);
    text.textContent = label;
    g.append(rect, text);
    g.addEventListener("click", run);
    g.addEventListener("keydown", function (event) {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      run();
    });
    svg.append(g);
    return g;
  }

  function furnish() {
    var box = document.createElementNS(SVG, "foreignObject");
    [["x", MARGIN], ["y", 66], ["width", 250], ["height", 24]].forEach(function (pair) { box.setAttribute(pair[0], pair[1]); });
    input = document.createElementNS(HTML, "input");
    input.id = "search";
    input.type = "search";
    input.setAttribute("aria-label", "search names of frames by a regular expression");
    input.placeholder = "search: a regular expression (/)";
    input.style.cssText = "box-sizing:border-box;width:100%;height:22px;font:12px monospace;color-scheme:light dark";
    input.addEventListener("input", setPattern);
    box.append(input);
    svg.append(box);
    button("flip", 270, "flip", "turn the picture upside down (i)", flip);
    resetButton = button("reset", 325, "reset zoom", "show everything (Home)", function () { zoom(frames[0]); });
    matched = document.createElementNS(SVG, "text");
    matched.id = "matched";
    matched.setAttribute("class", "fact");
    matched.setAttribute("x", 430);
    matched.setAttribute("y", 81);
    matched.setAttribute("role", "status");
    svg.append(matched);
    details.setAttribute("role", "status");
  }

  function spread() {
    var legend = document.getElementById("legend");
    legend.setAttribute("transform", "translate(" + (width() - 1200) + " 0)");
    legend.style.display = width() < 1000 ? "none" : "";
    draw();
  }

  function frameOf(target) { return byElement.get(target.closest && target.closest("#frames > g")); }

  read();
  if (!frames.length) return;
  svg.setAttribute("width", "100%");
  svg.removeAttribute("viewBox");
  details.textContent = "iiiiiiiiiiMMMMMMMMMM";
  charWidth = details.getComputedTextLength() / 20 || charWidth;
  details.textContent = "";
  furnish();
  zoomed = frames[0];
  select(frames[0], false);
  spread();
  details.textContent = "click or Enter: zoom; arrows: callers, callees, neighbours; / or ctrl-F: search; i: flip; Home: all";
  group.addEventListener("click", function (event) {
    var f = frameOf(event.target);
    if (f) zoom(f);
  });
  group.addEventListener("mouseover", function (event) { tell(frameOf(event.target)); });
  group.addEventListener("focusin", function (event) { tell(frameOf(event.target)); });
  document.addEventListener("keydown", onKey);
  window.addEventListener("resize", spread);
})();
