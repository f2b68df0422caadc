() => {
  // Keeps a log that is renewed at its end, as long as its reader has not scrolled away from there.
  if (window.asFollowing) return;
  window.asFollowing = true;
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
      const place = places.get(log.dataset.follow) ?? null;
      log.scrollTop = place === null ? log.scrollHeight : place;
    }
  }).observe(document.body, { childList: true, subtree: true });
}
