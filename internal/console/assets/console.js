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

// contentOf returns the content of a page as it was sent, without the notice of an action: it is sent
// only once.
function contentOf(main) {
  const copy = main.cloneNode(true);
  copy.querySelector("#flash")?.remove();
  return copy.innerHTML;
}

// keepFresh fetches the page again and again, and replaces its content if it has changed, unless the
// reader is using it. It must be called before anything else changes the page.
function keepFresh(main) {
  const every = 3000;
  let before = contentOf(main);
  main.addEventListener("click", (event) => { // what the page opened by itself is not being read
    event.target.closest("summary")?.parentElement.setAttribute("data-used", "");
  });
  const busy = () => {
    const active = document.activeElement;
    return document.hidden || (active && active !== main && main.contains(active)) || main.querySelector("details[open][data-used]") ||
      !getSelection().isCollapsed;
  };
  const refresh = async () => {
    try {
      if (!busy()) {
        const response = await fetch(location.href, { headers: { Accept: "text/html" } });
        if (response.redirected && new URL(response.url).pathname.endsWith("/login")) {
          location.assign(response.url);
          return;
        }
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("main");
        const content = fresh && contentOf(fresh);
        if (response.ok && fresh && content !== before && !busy()) {
          const notice = fresh.querySelector("#flash") ?? main.querySelector("#flash");
          fresh.querySelector("#flash")?.remove();
          main.replaceChildren(...(notice ? [notice] : []), ...fresh.childNodes);
          localize(main);
          before = content;
        }
      }
    } catch {
      // The server is away: the next attempt may reach it.
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
  const fields = (within) => [...within.querySelectorAll("textarea, select, input:not([type=hidden])")];
  const nameOf = (field) => field.form?.getAttribute("action") + " " + field.name;
  for (const field of fields(old)) {
    const same = fields(fresh).find((each) => nameOf(each) === nameOf(field));
    if (same) {
      same.value = field.value;
    }
  }
  const active = old.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...old.querySelectorAll("details")].map((each) => each.open);
  [...fresh.querySelectorAll("details")].forEach((each, i) => { each.open ||= open[i] === true; });
  old.replaceChildren(...fresh.childNodes);
  if (active) {
    document.getElementById(active)?.focus();
  }
}

// Stream shows the entries of a conversation as they come.
class Stream {
  constructor(timeline) {
    this.timeline = timeline;
    this.status = document.getElementById("live-status");
    this.partial = null;
    this.shown = {}; // by state
    const source = new EventSource(timeline.dataset.live);
    source.addEventListener("entry", (event) => this.entry(JSON.parse(event.data)));
    source.addEventListener("delta", (event) => this.delta(JSON.parse(event.data)));
    source.addEventListener("ended", (event) => this.ended(JSON.parse(event.data)));
    source.addEventListener("state", (event) => this.state(JSON.parse(event.data)));
    source.addEventListener("error", () => this.say(source.readyState === EventSource.CLOSED ? "The page is not current any longer. Load it again." : "The connection is lost and is made again."));
    source.addEventListener("begin", () => {
      this.clear(); // the text of the message comes again
      this.say("This page is current.");
    });
    addEventListener("pagehide", () => source.close());
  }

  say(text) {
    if (this.status.textContent !== text) {
      this.status.textContent = text;
    }
  }

  atEnd() {
    return innerHeight + scrollY >= document.documentElement.scrollHeight - 400;
  }

  entry({ id, html }) {
    const follow = this.atEnd();
    const item = new DOMParser().parseFromString("<ol>" + html + "</ol>", "text/html").querySelector("li");
    localize(item);
    const old = document.getElementById(id);
    if (old) {
      const open = [...old.querySelectorAll("details")].map((each) => each.open);
      [...item.querySelectorAll("details")].forEach((each, i) => { each.open ||= open[i] === true; });
      old.replaceWith(item);
    } else {
      this.clear();
      this.place(item);
    }
    if (follow) {
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
  let first = document.getElementById("timeline");
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
    const response = await fetch(link.href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const list = page.getElementById("timeline"), next = page.getElementById("earlier");
    if (!response.ok || !list) {
      location.assign(link.href);
      return;
    }
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
      load().catch(() => {}); // the server is away: the link still works
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
const timeline = document.querySelector("[data-live]");
if (timeline) {
  new Stream(timeline);
}
const earlier = document.getElementById("earlier");
if (earlier) {
  extend(earlier);
}
