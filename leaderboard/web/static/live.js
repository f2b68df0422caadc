// A live part of a page. `element` holds it; `trigger` asks the server for another state of it.
//   a[data-go]      leads to the state of its address; with data-push the browser's history grows
//   form[data-go]   leads to the state of its fields, as soon as one of them changes
//   .as-sort        sorts by the column of its data-key, best first and then the other way round
// Focus, text that is being typed and scroll positions stay where they were.
const TYPING_PAUSE_MS = 250, PATIENCE_MS = 20000;
let kept = null, pause = 0;

const nameOf = (node) => node?.dataset?.go || node?.dataset?.key || node?.id || node?.name || '';
const boxes = () => element.querySelectorAll('.as-scroll[aria-label], .as-board-wrap[aria-label]');
const keep = () => {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  kept = {
    until: Date.now() + PATIENCE_MS,
    name: nameOf(active),
    value: active?.type === 'text' || active?.type === 'search' ? active.value : null,
    caret: active?.selectionStart ?? null,
    scrolls: [...boxes()].map((box) => [box.ariaLabel, box.scrollLeft, box.scrollTop]),
  };
};
const restore = () => {
  if (!kept || Date.now() > kept.until) return;
  for (const [label, left, top] of kept.scrolls) {
    const box = [...boxes()].find((one) => one.ariaLabel === label);
    if (box) { box.scrollLeft = left; box.scrollTop = top; }
  }
  if (!kept.name || document.activeElement !== document.body) return;
  const all = [...element.querySelectorAll('a, button, input, select, summary')];
  const bare = (name) => name.replace(/^un/, '');
  const same = all.find((one) => nameOf(one) === kept.name)
    ?? all.find((one) => one.dataset.go && bare(nameOf(one)) === bare(kept.name));
  if (!same) return;
  if (kept.value !== null && same.value !== kept.value) same.value = kept.value;
  same.focus({ preventScroll: true });
  if (kept.value !== null) same.setSelectionRange?.(kept.caret, kept.caret);
};
// One state is asked for at a time, by all parts of a page; what is asked for last comes next.
// Gradio would ask for a state again that was pressed before the last.
const go = (query, push) => {
  clearTimeout(pause);
  if (Date.now() - window.asAsking.since < PATIENCE_MS) {
    window.asAsking.next = () => go(query, push);
    return;
  }
  window.asAsking.since = Date.now();
  keep();
  element.setAttribute('aria-busy', 'true');
  trigger('select', { query, push });
};
const queryOf = (form) => {
  const fields = new Map();
  for (const [name, value] of new FormData(form)) {
    if (value !== '') fields.set(name, [...(fields.get(name) ?? []), value]);
  }
  const joined = [...fields].map(([name, values]) => [name, values.join(',')]);
  return `?${new URLSearchParams(joined)}`;
};

new MutationObserver(() => {
  element.removeAttribute('aria-busy');
  restore();
}).observe(element, { childList: true, subtree: true });

element.addEventListener('click', (event) => {
  const elsewhere = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
  if (elsewhere) return;
  const link = event.target.closest('a[data-go]');
  if (link) {
    event.preventDefault();
    go(new URL(link.href).search, 'push' in link.dataset);
    return;
  }
  const sort = event.target.closest('button.as-sort[data-key]');
  if (sort) {
    event.stopPropagation();  // The site's script sorts tables that no server is asked for.
    const query = new URLSearchParams(location.search);
    const turned = sort.closest('th').ariaSort === 'descending';
    query.set('sort', `${turned ? '' : '-'}${sort.dataset.key}`);
    go(`?${query}`, false);
  }
});
element.addEventListener('submit', (event) => {
  const form = event.target.closest('form[data-go]');
  if (!form) return;
  event.preventDefault();
  go(queryOf(form), false);
});
element.addEventListener('input', (event) => {
  const form = event.target.closest('form[data-go]');
  if (!form) return;
  const typed = event.target.matches('input[type=text], input[type=search], input[type=range]');
  if (kept && nameOf(event.target) === kept.name) keep();
  clearTimeout(pause);
  pause = setTimeout(() => go(queryOf(form), false), typed ? TYPING_PAUSE_MS : 0);
});
if (!window.asAsking) {  // Else another part of the page has done it.
  window.asAsking = { since: 0, next: null };
  addEventListener('popstate', () => go(location.search, false));
  addEventListener('as-answered', () => {
    const { next } = window.asAsking;
    window.asAsking = { since: 0, next: null };
    next?.();
  });
}
