// SPDX-License-Identifier: Apache-2.0
// Keeps open pages current. Every page works without it.
"use strict";

const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

// localize shows times in the reader's zone and keeps the exact time as a title.
function localize(within) {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!time.title && !Number.isNaN(at.getTime())) {
      time.title = time.textContent;
      time.textContent = zone.format(at);
    }
  }
}

// note shows a text at the edge of the window, where it moves nothing else, or removes it.
function note(text) {
  const there = document.getElementById("note") ?? document.createElement("p");
  if (!text) {
    there.remove();
  } else if (there.textContent !== text) {
    Object.assign(there, { id: "note", className: "notice failed", role: "alert", textContent: text });
    document.body.append(there);
  }
}

// changed is when the page last changed the forms that decide about something, and moved when it last changed
// what is above them.
let changed = -Infinity, moved = -Infinity;

// A form is sent once, and not right after such a change: the reader may have aimed at a button that was there
// before. It can be sent again later, because the response may be a download.
addEventListener("submit", (event) => {
  const form = event.target, now = performance.now();
  if (form.getAttribute("method") !== "post") {
    return;
  }
  const decides = form.closest("#waits, [data-refresh]");
  const isLate = decides && now - moved < 1000 || now - changed < 1000 && (decides || form.getAttribute("action").endsWith("/cancel"));
  if (form.dataset.sent || isLate) {
    event.preventDefault();
    if (!form.dataset.sent) {
      note("Nothing was sent, because the page has just changed. Look at it, and click again.");
      setTimeout(() => note(""), 5000);
    }
    return;
  }
  form.dataset.sent = "true";
  setTimeout(() => delete form.dataset.sent, 5000);
  keep(form);
});

// fieldsOf returns the fields in which the reader writes.
const fieldsOf = (within) => [...within.querySelectorAll("textarea, select, input:not([type=hidden], [type=password])")];

// A checkbox is known by its value too, and what the reader writes is whether it is checked.
const isBox = (field) => field.type === "checkbox";
const nameOf = (field) => field.name + (isBox(field) ? "\n" + field.value : "");
const writtenIn = (field) => isBox(field) ? field.checked : field.value;
const write = (field, value) => { field[isBox(field) ? "checked" : "value"] = value; };

// personOf returns the name of the person of the page, if it has one.
const personOf = () => document.querySelector("header .who span")?.textContent;

// keep stores what was written into a form until its response is there. The form of the login has no person.
function keep(form) {
  if (personOf() === undefined) {
    return;
  }
  const values = fieldsOf(form).filter((field) => field.name && field.value).map((field) => [nameOf(field), writtenIn(field)]);
  try {
    sessionStorage.removeItem("sent");
    sessionStorage.setItem("sent", JSON.stringify({ action: form.getAttribute("action"), person: personOf(), values }));
  } catch {
    // it is too long, or the browser stores nothing
  }
}

// restore puts what was written into a form back if the response was an error without the form, such as at the
// end of a session or without a connection. The pages of errors and of the login have no header.
function restore() {
  const sent = JSON.parse(sessionStorage.getItem("sent"));
  if (!sent) {
    return;
  }
  const isPage = personOf() !== undefined, values = new Map(sent.values);
  const forms = [...document.forms].filter((each) => each.getAttribute("action") === sent.action);
  sent.isLost ||= !isPage || performance.getEntriesByType("navigation")[0]?.type !== "navigate";
  if (sent.isLost && personOf() === sent.person) {
    forms.flatMap(fieldsOf).filter((field) => values.has(nameOf(field))).forEach((field) => {
      write(field, values.get(nameOf(field)));
      field.closest("details")?.setAttribute("open", "");
    });
  }
  if (isPage && (forms.length > 0 || !sent.isLost || personOf() !== sent.person)) {
    sessionStorage.removeItem("sent");
  } else {
    sessionStorage.setItem("sent", JSON.stringify(sent));
  }
}

// asked returns the options of a request for a page by this script. The notice of an action is not for it.
const asked = () => ({ headers: { Accept: "text/html", "X-Consort-Script": "1" }, signal: AbortSignal.timeout(20000) });

// placeOf names the part of the page where an element is.
const placeOf = (element) => element.closest("[id]")?.id;

// keyOf names an element, so that it is found again in a new form of the page.
const keyOf = (element) => [element.tagName, placeOf(element), element.form?.getAttribute("action"), element.name,
  element.matches("a, button, summary, pre") ? element.textContent : ""].join("\n");

// exchanged replaces content by new content, in which it opens what was open and focuses what had the focus.
function exchanged(old, fresh, replace) {
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const key = active && keyOf(active), range = active?.matches("textarea, input") && [active.selectionStart, active.selectionEnd];
  const titleOf = (each) => placeOf(each) + each.querySelector("summary")?.textContent.replace(/\d+/g, "");
  const open = new Set([...old.querySelectorAll("details[open]")].map(titleOf));
  fresh.querySelectorAll("details").forEach((each) => { each.open ||= open.has(titleOf(each)); });
  const found = active && [...fresh.querySelectorAll("a, button, summary, pre, input, textarea, select")].find((each) => keyOf(each) === key);
  replace();
  found?.focus({ preventScroll: true });
  if (found && range && range[0] !== null) {
    found.setSelectionRange(...range);
  }
}

// keepFresh fetches the page again and again, and replaces its content if it has changed, unless the
// reader is using it: then it says that there is something new. It must be called before anything else changes
// the page.
function keepFresh(main) {
  const every = 3000, notice = main.querySelector("#flash");
  notice?.remove(); // it is sent only once
  let before = main.innerHTML;
  if (notice) {
    main.prepend(notice);
  }
  main.addEventListener("click", (event) => { // what the page opened by itself is not being read
    event.target.closest("summary")?.parentElement.setAttribute("data-used", "");
  });
  const busy = () => {
    const active = document.activeElement;
    return (active && active !== main && main.contains(active)) || main.querySelector("details[open][data-used]") || !getSelection().isCollapsed;
  };
  const isWritten = () => fieldsOf(main).some((field) => isBox(field) ? field.checked !== field.defaultChecked :
    field.matches("input, textarea") && field.value !== field.defaultValue);
  let failed = 0, isOld = false, isOut = false;
  const refresh = async () => {
    try {
      if (!document.hidden) {
        const response = await fetch(location.href, asked());
        isOut = response.redirected && new URL(response.url).pathname.endsWith("/login");
        if (isOut && !busy() && !isWritten()) {
          location.assign(response.url);
          return;
        }
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("main");
        const content = fresh?.innerHTML;
        failed = response.ok ? 0 : failed + 1;
        isOld = response.ok && fresh && content !== before && !isOut;
        if (isOld && !busy()) {
          keepFields(main, fresh);
          main.replaceChildren(...(notice ? [notice] : []), ...fresh.childNodes);
          localize(main);
          before = content;
          changed = performance.now();
          isOld = false;
        }
      }
    } catch {
      failed++; // the next attempt may reach the server
    }
    if (failed >= 3) {
      note("This page is not current: the server does not send it.");
    } else if (isOut) {
      note("This page is not current: you are logged out. Load it again.");
    } else {
      note(isOld ? "There is something new. The page shows it when nothing on it is open, selected or being written." : "");
    }
    setTimeout(refresh, every);
  };
  setTimeout(refresh, every);
}

// exchange replaces the content of an element. What the reader has written in its fields, and opened,
// stays.
function exchange(old, html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  localize(fresh);
  keepFields(old, fresh);
  fresh.id = old.id;
  exchanged(old, fresh, () => old.replaceChildren(...fresh.childNodes));
  if (old.id === "waits" || old.id === "actions") {
    changed = performance.now();
  }
}

// keepFields copies what the reader has written to the same fields of new content.
function keepFields(old, fresh) {
  const fieldIn = (field) => field.form?.getAttribute("action") + " " + nameOf(field);
  for (const field of fieldsOf(old)) {
    const same = fieldsOf(fresh).find((each) => fieldIn(each) === fieldIn(field));
    if (same) {
      write(same, writtenIn(field));
    }
  }
}

// Stream shows the entries of a conversation as they come.
class Stream {
  constructor(timeline) {
    this.timeline = timeline;
    this.status = document.getElementById("live-status");
    this.partial = null;
    this.shown = {}; // by state
    this.connect(timeline.dataset.live);
    this.last = "";
    const again = () => {
      if (this.source.readyState === 2) { // closed
        const url = new URL(timeline.dataset.live, location.href);
        url.searchParams.set("again", "1");
        if (this.last) {
          url.searchParams.set("after", this.last);
        }
        this.connect(url);
      }
    };
    // A page that is not seen has no connection: browsers open only a few to a server.
    let leaves = 0;
    const seen = () => {
      clearTimeout(leaves);
      if (document.hidden) {
        leaves = setTimeout(() => this.source.close(), 5000);
      } else {
        again();
      }
    };
    document.addEventListener("visibilitychange", seen);
    seen(); // a tab can open in the background
    addEventListener("pagehide", () => this.source.close());
    addEventListener("pageshow", again);
  }

  connect(url) {
    const source = this.source = new EventSource(url);
    source.addEventListener("entry", (event) => {
      this.last = event.lastEventId || this.last;
      this.entry(JSON.parse(event.data));
    });
    source.addEventListener("delta", (event) => this.delta(JSON.parse(event.data)));
    source.addEventListener("ended", (event) => this.ended(JSON.parse(event.data)));
    source.addEventListener("state", (event) => this.state(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      const isOver = source.readyState === EventSource.CLOSED;
      this.say(isOver ? "The page is not current any longer. Load it again." : "The connection is lost and is made again.");
      note(isOver ? "This page is not current any longer. Load it again." : "");
    });
    source.addEventListener("begin", () => {
      note("");
      this.clear(); // the text of the message comes again
      this.say("This page is current.");
    });
  }

  say(text) {
    if (this.status.textContent !== text) {
      this.status.textContent = text;
    }
  }

  // atEnd reports whether the page follows what comes: not away from a field in which the reader writes.
  atEnd() {
    return !document.activeElement?.matches("textarea, input, select") && innerHeight + scrollY >= document.documentElement.scrollHeight - 400;
  }

  entry({ id, html }) {
    const follow = this.atEnd();
    moved = performance.now();
    const item = new DOMParser().parseFromString("<ol>" + html + "</ol>", "text/html").querySelector("li");
    localize(item);
    const old = document.getElementById(id);
    if (old) {
      exchanged(old, item, () => old.replaceWith(item));
    } else {
      this.clear();
      this.place(item);
    }
    if (follow) {
      this.trim();
      item.scrollIntoView({ block: "end" });
    }
  }

  // place adds an entry where its number belongs: the call of a result may be before the page.
  place(item) {
    const number = (entry) => Number(entry.id.slice(1));
    let before = this.timeline.lastElementChild;
    while (before && number(before) > number(item)) {
      before = before.previousElementSibling;
    }
    if (before) {
      before.after(item);
    } else {
      this.timeline.prepend(item);
    }
  }

  // trim removes the beginning of a long timeline, which the link to the earlier canisters gets again.
  trim() {
    const most = 1000, entries = this.timeline.children;
    if (entries.length < 1.2 * most) {
      return;
    }
    document.querySelectorAll(".timeline.part").forEach((part) => part.remove());
    while (entries.length > most) {
      entries[0].remove();
    }
    let link = document.getElementById("earlier");
    if (!link) {
      link = document.createElement("a");
      Object.assign(link, { id: "earlier", textContent: "Earlier canisters" });
      this.timeline.before(link);
      extend(link);
    }
    link.href = this.timeline.dataset.live.replace(/\/live\?.*/, "?to=") + (Number(entries[0].id.slice(1)) - 1);
  }

  delta({ again, text, status }) {
    if (again) {
      this.clear();
    }
    if (text) {
      const follow = this.atEnd();
      if (!this.partial) {
        this.partial = document.createElement("li");
        this.partial.className = "entry streaming";
        this.timeline.append(this.partial);
        this.say("The model is answering.");
      }
      this.partial.append(text);
      if (follow) {
        this.partial.scrollIntoView({ block: "end" });
      }
    }
    if (status) {
      this.say(status);
    }
  }

  ended(text) {
    this.clear();
    this.say(text);
  }

  // state replaces what the page shows about the turn, by the IDs of the elements.
  state(parts) {
    const follow = this.atEnd();
    for (const [id, html] of Object.entries(parts)) {
      if (this.shown[id] !== html) {
        this.shown[id] = html;
        exchange(document.getElementById(id), html);
      }
    }
    if (follow) {
      scrollTo({ top: document.documentElement.scrollHeight });
    }
  }

  clear() {
    this.partial?.remove();
    this.partial = null;
  }
}

// extend makes the link to the earlier canisters put them in front of the timeline. After the
// first click, they come whenever the reader scrolls near the link. They are in lists of 40, each
// of which the browser skips as a whole while it is out of sight.
function extend(link) {
  let loading = false;
  const load = async () => {
    if (loading) {
      return;
    }
    loading = true;
    near.disconnect();
    try {
      await more();
    } finally {
      loading = false;
    }
  };
  const more = async () => {
    const response = await fetch(link.href, asked());
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const list = page.getElementById("timeline"), next = page.getElementById("earlier");
    if (!response.ok || !list) {
      location.assign(link.href);
      return;
    }
    let first = document.querySelector(".timeline");
    const old = first, top = old.getBoundingClientRect().top;
    localize(list);
    while (list.lastElementChild) {
      const part = document.createElement("ol");
      part.className = "timeline part";
      part.append(...[...list.children].slice(-40));
      first.before(part);
      first = part;
    }
    scrollBy({ top: old.getBoundingClientRect().top - top, behavior: "instant" });
    if (next) {
      link.href = next.href;
      near.observe(link);
    } else {
      link.remove();
    }
  };
  const near = new IntersectionObserver((seen) => {
    if (seen.some((each) => each.isIntersecting)) {
      load().catch(() => setTimeout(() => near.observe(link), 5000)); // the server is away: the link still works
    }
  }, { rootMargin: "3000px 0px" });
  link.addEventListener("click", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      load().catch(() => location.assign(link.href));
    }
  });
}

const main = document.getElementById("main");
if (main?.hasAttribute("data-refresh")) {
  keepFresh(main);
}
localize(document);
try {
  restore();
} catch {
  // the browser stores nothing
}
const timeline = document.querySelector("[data-live]");
if (timeline) {
  new Stream(timeline);
}
const earlier = document.getElementById("earlier");
if (earlier) {
  extend(earlier);
}
