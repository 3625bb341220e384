(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent);
  var texts = data.texts, rows = data.rows, PAGE = 25;
  var search = document.getElementById("search"), engine = document.getElementById("engine");
  var chips = document.getElementById("chips"), list = document.getElementById("list");
  var shown = document.getElementById("shown"), more = document.getElementById("more");
  var verdicts = {}, engines = {}, off = {}, matches = [], drawn = 0;

  function element(tag, attributes, children) {
    var node = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (key) { node.setAttribute(key, attributes[key]); });
    (children || []).forEach(function (child) {
      node.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
    });
    return node;
  }
  function number(n) { return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f"); }
  function id(row) {
    var parts = [];
    for (var i = 0; i < 6; i++) { if (i === 0 || texts[row[i]] !== "") { parts.push(texts[row[i]]); } }
    return parts.join("/");
  }

  rows.forEach(function (row) {
    verdicts[texts[row[7]]] = (verdicts[texts[row[7]]] || 0) + 1;
    engines[texts[row[6]]] = true;
  });
  // Declined and skipped cases are many and say little: they wait until they are asked for.
  var others = Object.keys(verdicts).some(function (v) { return v !== "unsupported" && v !== "skipped"; });
  Object.keys(engines).forEach(function (name) { engine.appendChild(element("option", { value: name }, [name])); });
  Object.keys(verdicts).forEach(function (name) {
    off[name] = others && (name === "unsupported" || name === "skipped");
    var chip = element("button", { type: "button", "aria-pressed": String(!off[name]), "data-verdict": name },
      [element("i", { "class": "v-" + name }), name + " " + number(verdicts[name])]);
    chip.addEventListener("click", function () {
      off[name] = !off[name];
      chip.setAttribute("aria-pressed", String(!off[name]));
      filter();
    });
    chips.appendChild(chip);
  });

  function filter() {
    var terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    matches = rows.filter(function (row) {
      if (off[texts[row[7]]] || (engine.value && texts[row[6]] !== engine.value)) { return false; }
      if (terms.length === 0) { return true; }
      var text = (id(row) + " " + texts[row[8]] + " " + texts[row[9]]).toLowerCase();
      return terms.every(function (term) { return text.indexOf(term) >= 0; });
    });
    list.textContent = "";
    drawn = 0;
    draw();
  }

  function draw() {
    var next = matches.slice(drawn, drawn + PAGE);
    next.forEach(function (row) { list.appendChild(entry(row)); });
    drawn += next.length;
    more.hidden = drawn >= matches.length;
    shown.textContent = rows.length === 0 ? "Every case passed."
      : number(matches.length) + " of " + number(rows.length) + " cases" +
        (data.unlisted ? " (" + number(data.unlisted) + " more found no room here)" : "") +
        (drawn < matches.length ? ", the first " + number(drawn) + " shown" : "") +
        (data.untold ? "; " + number(data.untold) + " stories found no room here, dnn-assay report has them" : "");
  }

  function entry(row) {
    var story = data.stories[row[10] - 1], name = id(row), cut = name.indexOf("/");
    var label = [element("b", {}, [cut < 0 ? name : name.slice(0, cut)])];
    if (cut >= 0) { label.push(element("em", {}, [name.slice(cut)])); }
    label.push(element("em", {}, [" @" + texts[row[6]]]));
    var head = element("summary", {}, [
      element("span", { "class": "verdict" }, [element("i", { "class": "v-" + texts[row[7]] }), texts[row[8]]]),
      element("span", { "class": "id" }, label),
      element("span", { "class": "why" }, [texts[row[9]]])
    ]);
    var node = element("details", story ? {} : { "class": "bare" }, [head]);
    if (story) {
      node.addEventListener("toggle", function () {
        if (node.open && node.children.length === 1) { node.appendChild(tell(story)); }
      });
    }
    return node;
  }

  function tell(story) {
    var body = element("div", { "class": "story" }, [element("pre", {}, [story.text])]);
    if (story.picture) { body.insertBefore(draw_picture(story.picture), body.firstChild); }
    body.appendChild(block("See it again", story.again));
    if (story.waiver) { body.appendChild(block("A waiver, to complete and paste", story.waiver)); }
    return body;
  }

  function block(title, text) {
    var copy = element("button", { type: "button" }, ["Copy"]);
    copy.addEventListener("click", function () {
      navigator.clipboard.writeText(text).then(function () { copy.textContent = "Copied"; });
    });
    return element("div", {}, [element("h4", {}, [title, copy]), element("pre", {}, [text])]);
  }

  // Two axes a panel, the last two first; the box holds all wrong elements, the dots are the first
  // of them, the ring is the worst.
  function draw_picture(picture) {
    var rank = picture.dims.length, box = element("div", { "class": "picture" });
    var names = rank === 4 ? ["n", "c", "h", "w"] : rank === 5 ? ["n", "c", "d", "h", "w"]
      : rank === 3 ? ["n", "c", "l"] : picture.dims.map(function (_, i) { return "axis " + i; });
    for (var x = rank - 1; x >= 0; x -= 2) { box.appendChild(panel(picture, x - 1, x, names)); }
    return box;
  }

  function panel(picture, y, x, names) {
    var SVG = "http://www.w3.org/2000/svg", width = picture.dims[x], height = y < 0 ? 1 : picture.dims[y];
    var cell = Math.max(1, Math.min(14, 260 / width, 180 / height));
    if (cell * width < 24) { cell = 24 / width; }
    function shape(tag, attributes) {
      var node = document.createElementNS(SVG, tag);
      Object.keys(attributes).forEach(function (key) { node.setAttribute(key, attributes[key]); });
      return node;
    }
    var w = width * cell, h = Math.max(height * cell, 6), step = h / height;
    var svg = shape("svg", { width: w + 4, height: h + 4, viewBox: "-2 -2 " + (w + 4) + " " + (h + 4) });
    svg.appendChild(shape("rect", { "class": "p-all", x: 0, y: 0, width: w, height: h }));
    var top = y < 0 ? 0 : picture.low[y], bottom = y < 0 ? 0 : picture.high[y];
    svg.appendChild(shape("rect", { "class": "p-box", x: picture.low[x] * cell, y: top * step,
      width: (picture.high[x] - picture.low[x] + 1) * cell, height: (bottom - top + 1) * step }));
    picture.first.forEach(function (index) {
      var at = coordinates(picture.dims, index);
      svg.appendChild(shape("circle", { "class": "p-dot", cx: (at[x] + .5) * cell,
        cy: ((y < 0 ? 0 : at[y]) + .5) * step, r: Math.max(1.5, Math.min(cell, step) / 4) }));
    });
    svg.appendChild(shape("circle", { "class": "p-worst", cx: (picture.worst[x] + .5) * cell,
      cy: ((y < 0 ? 0 : picture.worst[y]) + .5) * step, r: Math.max(3, Math.min(cell, step) / 2 - .5) }));
    var label = (y < 0 ? "" : names[y] + " " + height + " × ") + names[x] + " " + width;
    return element("figure", {}, [svg, element("figcaption", {}, [label])]);
  }

  function coordinates(dims, index) {
    var at = [];
    for (var axis = dims.length - 1; axis >= 0; axis--) { at[axis] = index % dims[axis]; index = Math.floor(index / dims[axis]); }
    return at;
  }

  document.addEventListener("click", function (event) {
    if (event.target.hasAttribute && event.target.hasAttribute("data-copy")) {
      navigator.clipboard.writeText(event.target.parentNode.nextSibling.textContent);
      event.target.textContent = "Copied";
    }
    if (event.target.hasAttribute && event.target.hasAttribute("data-fold")) {
      var folded = event.target.closest("tbody").nextElementSibling;
      folded.hidden = !folded.hidden;
    }
    var query = event.target.getAttribute && event.target.getAttribute("data-q");
    if (query) {
      search.value = query;
      filter();
      document.getElementById("cases").scrollIntoView({ behavior: "smooth" });
    }
  });
  var waiting;
  search.addEventListener("input", function () { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  engine.addEventListener("change", filter);
  more.addEventListener("click", draw);
  filter();
  // For our own tests: what sticks out at the side, and when the page was painted.
  if (location.hash === "#measure") {
    var root = document.documentElement;
    root.setAttribute("data-overflow", String(root.scrollWidth - root.clientWidth));
    new PerformanceObserver(function (seen) {
      seen.getEntriesByName("first-contentful-paint").forEach(function (entry) {
        root.setAttribute("data-paint", String(Math.round(entry.startTime)));
        console.log("first contentful paint after " + Math.round(entry.startTime) + " ms");
      });
    }).observe({ type: "paint", buffered: true });
  }
  // A link may open what it means: report.html#q=conv&open.
  if (location.hash.indexOf("#q=") === 0) {
    var wanted = decodeURIComponent(location.hash.slice(3)).split("&");
    search.value = wanted[0];
    filter();
    if (wanted[1] === "open" && list.firstChild) { list.firstChild.open = true; }
  }
}());
