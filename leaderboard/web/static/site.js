// Behaviour of every page: theme, search, skip link, waiting, places on a page, and boards.
// Scripts inside Gradio's HTML do not run, so all of it listens on the document.
(() => {
  const find = (selector, from = document) => from.querySelector(selector);

  // Content is shown when its heading and the footer are there and nothing has changed for a while.
  const SETTLED_MS = 150, LATEST_MS = 1500, AT_LAST_MS = 10000;
  const show = () => {
    if (!document.body.classList.contains('as-loading')) return;
    watching.disconnect();
    document.body.classList.remove('as-loading');
    const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    part?.querySelectorAll('details').forEach((one) => { one.open = true; });
    part?.scrollIntoView();
  };
  let settled = 0, first = 0;
  const watching = new MutationObserver(() => {
    if (!find('main h1, main .as-note') || !find('main .as-foot')) return;
    first ||= performance.now();
    clearTimeout(settled);
    settled = setTimeout(show, Math.max(0, Math.min(SETTLED_MS, first + LATEST_MS - performance.now())));
  });
  watching.observe(document.body, { childList: true, subtree: true });
  setTimeout(show, AT_LAST_MS);

  // The base address of a page is the root of the site: its own fragment would lead there.
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('.as-skip, [data-place]');
    if (!link) return;
    event.preventDefault();
    const part = link.dataset.place ? document.getElementById(link.dataset.place) : find('main');
    part?.scrollIntoView();
    part?.setAttribute('tabindex', '-1');
    part?.focus({ preventScroll: true });
  });

  // What stands beside a button is copied, or marked where the browser does not let us.
  document.addEventListener('click', async (event) => {
    const button = event.target.closest?.('[data-copy]'), text = button && find('pre', button.parentElement);
    if (!text?.textContent) return;
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    } catch {
      getSelection().selectAllChildren(text);
    }
  });

  // Theme.
  const theme = find('.as-theme');
  const say = () => theme?.setAttribute('aria-pressed', String(document.body.classList.contains('dark')));
  say();
  new MutationObserver(say).observe(document.body, { attributeFilter: ['class'] });
  theme?.addEventListener('click', () => {
    const dark = document.body.classList.toggle('dark');
    try { localStorage.setItem('assay-theme', dark ? 'dark' : 'light'); } catch { /* for this page only */ }
  });

  // Search.
  const box = find('.as-find'), field = find('#as-find'), list = find('#as-matches');
  const MOST = 8;
  let names = null, at = -1;
  const load = async () => {
    if (names) return names;
    const answer = await fetch(new URL('./names.json', document.baseURI));
    if (!answer.ok) return [];
    names = await answer.json();
    return names;
  };
  const close = () => {
    list.hidden = true;
    at = -1;
    field.setAttribute('aria-expanded', 'false');
    field.removeAttribute('aria-activedescendant');
    find('.as-no-match', box).textContent = '';
  };
  const matching = (all, words) => {
    const score = (one) => {
      const name = one.name.toLowerCase();
      return name.startsWith(words) ? 0 : name.includes(` ${words}`) ? 1 : name.includes(words) ? 2 : 3;
    };
    return all.map((one) => [score(one), one]).filter(([n]) => n < 3).sort((a, b) => a[0] - b[0]).slice(0, MOST).map(([, one]) => one);
  };
  const offer = async () => {
    const words = field.value.trim().toLowerCase();
    if (!words) { close(); return; }
    const found = matching(await load(), words);
    if (field.value.trim().toLowerCase() !== words) return;
    list.replaceChildren(...found.map((one, place) => {
      const item = document.createElement('li'), name = document.createElement('span'), kind = document.createElement('span');
      name.textContent = one.name;
      kind.textContent = one.kind;
      item.append(name, ' ', kind);
      item.id = `as-match-${place}`;
      item.setAttribute('role', 'option');
      item.setAttribute('aria-selected', 'false');
      item.dataset.href = one.href;
      return item;
    }));
    list.hidden = found.length === 0;
    at = -1;
    field.setAttribute('aria-expanded', String(found.length > 0));
    field.removeAttribute('aria-activedescendant');
    find('.as-no-match', box).textContent = found.length ? '' : names ? 'No metric, model or benchmark of this name.' : 'The names cannot be read at the moment.';
  };
  const choose = (place) => {
    const items = [...list.children];
    if (!items.length) return;
    at = (place + items.length) % items.length;
    items.forEach((one, n) => one.setAttribute('aria-selected', String(n === at)));
    items[at].scrollIntoView({ block: 'nearest' });
    field.setAttribute('aria-activedescendant', items[at].id);
  };
  const go = (item) => { if (item) location.href = new URL(item.dataset.href, document.baseURI).href; };
  if (field) {
    field.addEventListener('focus', load);
    field.addEventListener('input', offer);
    field.addEventListener('keydown', (event) => {
      if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
        event.preventDefault();
        if (list.hidden) offer(); else choose(at < 0 && event.key === 'ArrowUp' ? -1 : at + (event.key === 'ArrowDown' ? 1 : -1));
      } else if (event.key === 'Enter') go(list.children[Math.max(at, 0)]);
      else if (event.key === 'Escape') {
        close();
        field.value = '';
        if (box.classList.contains('is-open')) { unfold(false); find('.as-find-open').focus(); }
      }
    });
    list.addEventListener('mousedown', (event) => event.preventDefault());
    list.addEventListener('click', (event) => go(event.target.closest('li')));
    const unfold = (open) => {
      box.classList.toggle('is-open', open);
      find('.as-find-open').setAttribute('aria-expanded', String(open));
    };
    find('.as-find-open').addEventListener('click', () => {
      unfold(!box.classList.contains('is-open'));
      if (box.classList.contains('is-open')) field.focus(); else close();
    });
    document.addEventListener('click', (event) => {
      if (box.contains(event.target)) return;
      close();
      unfold(false);
    });
    document.addEventListener('focusin', (event) => { if (!box.contains(event.target)) close(); });
  }

  // What a reader unfolded stays so, at the same place, when its part of the page is renewed.
  const kept = window.asKept = new Map();
  document.addEventListener('toggle', (event) => {
    const one = event.target.closest?.('details[data-keep]');
    if (!one || one !== event.target) return;
    if (one.open) kept.set(one.dataset.keep, kept.get(one.dataset.keep) ?? 0);
    else kept.delete(one.dataset.keep);
  }, true);
  document.addEventListener('scroll', (event) => {
    const one = event.target.closest?.('details[data-keep]');
    if (one && kept.has(one.dataset.keep)) kept.set(one.dataset.keep, event.target.scrollTop);
  }, true);
  new MutationObserver(() => {
    for (const one of document.querySelectorAll('details[data-keep]:not([open])')) {
      if (!kept.has(one.dataset.keep)) continue;
      one.open = true;
      const log = find('pre', one);
      if (log) log.scrollTop = kept.get(one.dataset.keep);
    }
  }).observe(document.body, { childList: true, subtree: true });

  // A drawer closes by Escape, which leads back to its button, and by a press anywhere else.
  const drawer = () => find('details.as-drawer[open]');
  document.addEventListener('keydown', (event) => {
    const one = event.key === 'Escape' && drawer();
    if (!one) return;
    one.open = false;
    find('summary', one).focus();
  });
  document.addEventListener('pointerdown', (event) => {
    const one = drawer();
    if (one && !one.contains(event.target)) one.open = false;
  });

  // A log that is renewed is kept at its end, as long as its reader has not scrolled away from there.
  const places = new Map();
  document.addEventListener('scroll', (event) => {
    const log = event.target;
    if (!log.dataset?.follow) return;
    const away = log.scrollHeight - log.clientHeight - log.scrollTop;
    places.set(log.dataset.follow, away < 24 ? null : log.scrollTop);
  }, true);
  new MutationObserver(() => {
    for (const log of document.querySelectorAll('pre[data-follow]:not([data-placed])')) {
      log.dataset.placed = '1';
      log.scrollTop = places.get(log.dataset.follow) ?? log.scrollHeight;
    }
  }).observe(document.body, { childList: true, subtree: true });

  // Boards: a row unfolds; a heading sorts, with what has no value last in both directions.
  const key = (row, column) => {
    const given = row.cells[column]?.dataset.v ?? '';
    return given === '' ? null : Number.isNaN(Number(given)) ? given : Number(given);
  };
  const compared = (a, b) => typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b));
  const served = new WeakMap();
  const sort = (button) => {
    const head = button.closest('th'), table = head.closest('table'), body = table.tBodies[0];
    const now = find('th[aria-sort]', table);
    if (!served.has(table)) served.set(table, { head: now, way: now?.getAttribute('aria-sort'), rows: [...body.rows] });
    const way = head.getAttribute('aria-sort') === 'descending' ? 'ascending' : 'descending';
    now?.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', way);
    const first = served.get(table), back = first.head === head && first.way === way;
    for (const tier of table.querySelectorAll('tr.as-tier')) tier.hidden = !back;
    if (back) { body.append(...first.rows); return; }
    const rows = [...body.rows].filter((row) => row.dataset.row !== undefined);
    const keyed = rows.map((row) => [key(row, head.cellIndex), row, row.nextElementSibling]);
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return way === 'descending' ? compared(b, a) : compared(a, b);
    });
    for (const [, row, detail] of keyed) body.append(row, ...(detail?.classList.contains('as-detail') ? [detail] : []));
  };
  document.addEventListener('click', (event) => {
    const row = event.target.closest?.('.as-row-open');
    if (row) {
      const open = row.getAttribute('aria-expanded') !== 'true';
      row.setAttribute('aria-expanded', String(open));
      row.closest('tr').classList.toggle('is-open', open);
      document.getElementById(row.getAttribute('aria-controls'))?.classList.toggle('is-open', open);
    }
    const button = event.target.closest?.('.as-sort');
    if (button && !button.closest('[data-server-sort]')) sort(button);
  });
})();
